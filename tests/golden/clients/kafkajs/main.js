// kafkajs as a recorded client: node main.js PLAN.json
// Sends the samples of the plan with each codec, reads everything back in a group of two members, and does some
// administration; prints records and notes as JSON lines. kafkajs has gzip of its own, the others by plug-ins.
'use strict'
const fs = require('fs')
const { Kafka, CompressionTypes, CompressionCodecs, logLevel, AclResourceTypes, AclOperationTypes,
  AclPermissionTypes, ResourcePatternTypes, ConfigResourceTypes } = require('kafkajs')
const LZ4 = require('kafkajs-lz4')
const zstd = require('@bokuweb/zstd-wasm')
CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = new LZ4().codec
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async data => Buffer.from(zstd.decompress(data)),
})

const plan = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'))
const say = line => process.stdout.write(JSON.stringify(line) + '\n')
const raw = text => (text === null ? null : Buffer.from(text, 'base64'))
const text = data => (data === null || data === undefined ? null : data.toString('base64'))
const sleep = ms => new Promise(done => setTimeout(done, ms))
const kafka = new Kafka({ clientId: `kafkajs-${plan.prefix}`, brokers: plan.bootstrap.split(','),
  logLevel: logLevel.NOTHING, retry: { initialRetryTime: 100 } })
const types = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }

async function produce(topic, samples, codec, acks, options = {}) {
  const producer = kafka.producer({ allowAutoTopicCreation: false, ...options.config })
  await producer.connect()
  const target = options.config && options.config.transactionalId ? await producer.transaction() : producer
  // One partition per call: kafkajs reports one base offset per partition, in the order of the messages.
  for (const partition of [0, 1]) {
    const mine = samples.filter((_, n) => n % 2 === partition)
    const messages = mine.map(each => {
      const headers = {}
      // The same header twice is an array of values in kafkajs; a null header value is not possible.
      for (const [name, value] of each.headers) {
        if (value === null) continue
        headers[name] = name in headers ? [].concat(headers[name], [raw(value)]) : raw(value)
      }
      const message = { key: raw(each.key), value: raw(each.value), partition, headers }
      message.timestamp = String(each.timestamp === null ? Date.now() : each.timestamp)
      return message
    })
    const results = await target.send({ topic, acks, compression: types[codec], messages })
    const base = results && results.length && acks !== 0 ? Number(results[0].baseOffset) : null
    messages.forEach((message, n) => {
      const headers = []
      for (const [name, value] of Object.entries(message.headers)) {
        for (const each of [].concat(value)) headers.push([name, text(each)])
      }
      const line = { direction: 'produce', topic, partition, offset: base === null ? null : base + n,
        timestamp: Number(message.timestamp), timestamp_type: null, key: text(message.key), value: text(message.value),
        headers, codec, acks }
      if (target !== producer) line.transaction = options.abort ? 'aborted' : 'committed'
      say(line)
    })
  }
  if (target !== producer) await (options.abort ? target.abort() : target.commit())
  await producer.disconnect()
}

async function member(groupId, topics, life) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500, maxWaitTimeInMs: 500,
    rebalanceTimeout: 3000, readUncommitted: true })
  consumer.on(consumer.events.GROUP_JOIN, event =>
    say({ note: 'assigned', group: groupId, partitions: event.payload.memberAssignment }))
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  await consumer.run({
    autoCommitInterval: 500,
    eachMessage: async ({ topic, partition, message }) => {
      const headers = []
      for (const [name, value] of Object.entries(message.headers || {})) {
        for (const each of [].concat(value)) headers.push([name, text(each)])
      }
      say({ direction: 'fetch', topic, partition, offset: Number(message.offset), timestamp: Number(message.timestamp),
        timestamp_type: null, key: text(message.key), value: text(message.value), headers })
    },
  })
  await sleep(life)
  await consumer.stop()
  await consumer.disconnect()
}

async function attempt(what, call) {
  try {
    await call()
    say({ note: 'admin', call: what, error: null })
  } catch (error) {
    say({ note: 'admin', call: what, error: error.type || error.name })
  }
}

async function main() {
  say({ note: 'version', version: `kafkajs ${require('kafkajs/package.json').version}` })
  await zstd.init()
  const admin = kafka.admin()
  await admin.connect()
  const topics = plan.codecs.map(codec => `${plan.prefix}-${codec}`)
  const tx = `${plan.prefix}-tx`
  await admin.createTopics({ topics: [...topics, tx].map(topic => ({ topic, numPartitions: 2 })), waitForLeaders: true })
  if (plan.steps.includes('codecs')) {
    for (const [n, codec] of plan.codecs.entries()) await produce(topics[n], plan.samples, codec, -1)
    await member(`${plan.prefix}-codecs`, topics, 4000)
    return admin.disconnect()
  }
  for (const [n, codec] of plan.codecs.entries()) {
    await produce(topics[n], plan.samples, codec, -1)
    await produce(topics[n], plan.samples.slice(0, 4), codec, 1)
    await produce(topics[n], plan.samples.slice(0, 4), codec, 0)
  }
  await produce(topics[0], plan.samples.slice(0, 4), 'gzip', -1, { config: { idempotent: true, maxInFlightRequests: 1 } })
  for (const [n, abort] of [false, true, false].entries()) {
    const config = { transactionalId: `${plan.prefix}-${n}`, idempotent: true, maxInFlightRequests: 1 }
    await produce(tx, plan.samples.slice(0, 4), 'none', -1, { config, abort })
  }
  const group = `${plan.prefix}-group`
  await Promise.all([member(group, topics, 5500), sleep(1500).then(() => member(group, topics, 2000))])
  await attempt('describeGroups', () => admin.describeGroups([group]))
  await attempt('listGroups', () => admin.listGroups())
  await attempt('fetchOffsets', () => admin.fetchOffsets({ groupId: group, topics: [topics[0]] }))
  await attempt('fetchTopicOffsets', () => admin.fetchTopicOffsets(topics[0]))
  await attempt('fetchTopicMetadata', () => admin.fetchTopicMetadata({ topics }))
  await attempt('describeCluster', () => admin.describeCluster())
  const resource = { type: ConfigResourceTypes.TOPIC, name: topics[0] }
  await attempt('describeConfigs', () => admin.describeConfigs({ includeSynonyms: true, resources: [resource] }))
  const configEntries = [{ name: 'retention.ms', value: '3600000' }]
  await attempt('alterConfigs', () => admin.alterConfigs({ validateOnly: false, resources: [{ ...resource, configEntries }] }))
  await attempt('createPartitions', () => admin.createPartitions({ topicPartitions: [{ topic: topics[0], count: 3 }] }))
  await attempt('deleteTopicRecords', () =>
    admin.deleteTopicRecords({ topic: topics[0], partitions: [{ partition: 0, offset: '1' }] }))
  const acl = { resourceType: AclResourceTypes.TOPIC, resourceName: topics[0], principal: 'User:someone', host: '*',
    resourcePatternType: ResourcePatternTypes.LITERAL, operation: AclOperationTypes.READ,
    permissionType: AclPermissionTypes.ALLOW }
  await attempt('createAcls', () => admin.createAcls({ acl: [acl] }))
  await attempt('describeAcls', () => admin.describeAcls(acl))
  await attempt('deleteAcls', () => admin.deleteAcls({ filters: [acl] }))
  await attempt('alterPartitionReassignments', () => admin.alterPartitionReassignments({ topics: [
    { topic: topics[0], partitionAssignment: [{ partition: 0, replicas: [1] }] }] }))
  await attempt('listPartitionReassignments', () => admin.listPartitionReassignments({ topics: [
    { topic: topics[0], partitions: [0] }] }))
  await attempt('deleteGroups', () => admin.deleteGroups([group]))
  await attempt('deleteTopics', () => admin.deleteTopics({ topics: [tx] }))
  await admin.disconnect()
}

main().catch(error => { console.error(error); process.exit(1) })
