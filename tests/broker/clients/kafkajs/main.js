// KafkaJS with default settings: node main.js BOOTSTRAP TOPIC
//
// Writes 20 values, reads 20 as a member of a group, commits, and prints what it has read.
const { Kafka, logLevel } = require('kafkajs')

async function main([bootstrap, topic]) {
  const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.ERROR })
  const producer = kafka.producer()
  await producer.connect()
  for (let number = 0; number < 20; number++) {
    await producer.send({ topic, messages: [{ value: `value ${number}` }] })
  }
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: 'g' })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let count = 0
  await new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('too few records')), 15000).unref()
    consumer.run({
      eachMessage: async ({ message }) => {
        console.log(message.value.toString())
        count += 1
        if (count === 20) resolve()
      }
    }).catch(reject)
  })
  await consumer.disconnect()
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error)
  process.exit(1)
})
