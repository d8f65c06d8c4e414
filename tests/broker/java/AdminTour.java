import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.ExpireDelegationTokenOptions;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.clients.admin.UserScramCredentialDeletion;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.token.delegation.DelegationToken;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * One call of everything that Kafka's AdminClient can do.
 *
 * <pre>AdminTour BOOTSTRAP PREFIX BROKERS [tour=security] [key=value ...]</pre>
 *
 * Every call is reported with its outcome; an error of the broker is an outcome too (SECURITY_DISABLED, for example).
 * Calls that one of the supported releases does not have are made by reflection. PREFIX-none and the group
 * PREFIX-classic are expected to exist.
 */
public final class AdminTour {
    private static final long SECONDS = 15;

    private interface Call {
        Object run() throws Exception;
    }

    private static void attempt(String name, Call call) {
        try {
            Object got = call.run();
            if (got instanceof KafkaFuture) {
                ((KafkaFuture<?>) got).get(SECONDS, TimeUnit.SECONDS);
            }
            Report.line("note", "admin", "call", name, "error", null);
        } catch (Exception | LinkageError error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            Report.line("note", "admin", "call", name, "error", cause.getClass().getSimpleName());
        }
    }

    /** Call {@code admin.name(arguments).all()}, for methods that not every release has. */
    private static Object reflect(Admin admin, String name, Class<?>[] types, Object... arguments) throws Exception {
        Object result = Admin.class.getMethod(name, types).invoke(admin, arguments);
        return result.getClass().getMethod("all").invoke(result);
    }

    public static void main(String[] args) throws Exception {
        String prefix = args[1];
        int brokers = Integer.parseInt(args[2]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("client.id", "admin-" + prefix);
        properties.put("enable.metrics.push", "false");
        properties.put("default.api.timeout.ms", "10000");
        properties.put("request.timeout.ms", "8000");
        boolean all = true;
        for (int i = 3; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            if (pair[0].equals("tour")) {
                all = false;
            } else {
                properties.put(pair[0], pair[1]);
            }
        }
        Report.line("note", "version", "version", "kafka-clients " + AppInfoParser.getVersion());
        try (Admin admin = Admin.create(properties)) {
            if (!all) {
                security(admin, prefix + "-admin");
                return;
            }
            topics(admin, prefix, brokers);
            configs(admin, prefix + "-admin");
            security(admin, prefix + "-admin");
            groups(admin, prefix, properties);
            transactions(admin, prefix);
            cluster(admin);
            attempt("deleteTopics", () -> admin.deleteTopics(List.of(prefix + "-admin")).all());
            attempt("deleteTopics (unknown)", () -> admin.deleteTopics(List.of("no-such-topic")).all());
        }
    }

    private static void topics(Admin admin, String prefix, int brokers) {
        String topic = prefix + "-admin";
        Map<String, String> config = Map.of("retention.ms", "3600000", "compression.type", "producer");
        attempt("createTopics", () ->
            admin.createTopics(List.of(new NewTopic(topic, 2, (short) brokers).configs(config))).all());
        attempt("createTopics (exists)", () -> admin.createTopics(List.of(new NewTopic(topic, 2, (short) 1))).all());
        attempt("describeTopics", () -> admin.describeTopics(List.of(topic, prefix + "-none")).allTopicNames());
        attempt("describeTopics (unknown)", () -> admin.describeTopics(List.of("no-such-topic")).allTopicNames());
        attempt("listTopics", () -> admin.listTopics().names());
        attempt("createPartitions", () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all());
        TopicPartition first = new TopicPartition(topic, 0);
        attempt("listOffsets", () -> admin.listOffsets(Map.of(first, OffsetSpec.latest())).all());
        attempt("listOffsets (max timestamp)", () ->
            admin.listOffsets(Map.of(new TopicPartition(prefix + "-none", 0), OffsetSpec.maxTimestamp())).all());
        attempt("deleteRecords", () ->
            admin.deleteRecords(Map.of(new TopicPartition(prefix + "-none", 0), RecordsToDelete.beforeOffset(1))).all());
        List<Integer> replicas = new ArrayList<>();
        for (int i = brokers; i >= 1; i--) {
            replicas.add(i);
        }
        attempt("alterPartitionReassignments", () -> admin.alterPartitionReassignments(
            Map.of(first, Optional.of(new NewPartitionReassignment(replicas)))).all());
        attempt("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments());
        attempt("electLeaders (preferred)", () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(first)).all());
        attempt("electLeaders (unclean)", () -> admin.electLeaders(ElectionType.UNCLEAN, Set.of(first)).all());
        attempt("describeLogDirs", () -> admin.describeLogDirs(List.of(1)).allDescriptions());
        attempt("describeReplicaLogDirs", () ->
            admin.describeReplicaLogDirs(List.of(new TopicPartitionReplica(topic, 0, 1))).all());
        attempt("alterReplicaLogDirs", () -> {
            Collection<String> dirs = admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).keySet();
            List<String> sorted = dirs.stream().sorted().collect(Collectors.toList());
            return admin.alterReplicaLogDirs(
                Map.of(new TopicPartitionReplica(prefix + "-none", 0, 1), sorted.get(sorted.size() - 1))).all();
        });
    }

    @SuppressWarnings("deprecation")
    private static void configs(Admin admin, String topic) {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
        attempt("describeConfigs (topic)", () -> admin.describeConfigs(List.of(resource)).all());
        attempt("describeConfigs (broker)", () -> admin.describeConfigs(List.of(broker)).all());
        ConfigEntry entry = new ConfigEntry("retention.ms", "7200000");
        attempt("alterConfigs", () ->
            reflect(admin, "alterConfigs", new Class<?>[] {Map.class}, Map.of(resource, new Config(List.of(entry)))));
        Collection<AlterConfigOp> operations = List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET),
            new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND),
            new AlterConfigOp(new ConfigEntry("compression.type", ""), AlterConfigOp.OpType.DELETE));
        attempt("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Map.of(resource, operations)).all());
        ConfigResource logger = new ConfigResource(ConfigResource.Type.BROKER_LOGGER, "1");
        attempt("describeConfigs (loggers)", () -> admin.describeConfigs(List.of(logger)).all());
        attempt("incrementalAlterConfigs (invalid)", () -> admin.incrementalAlterConfigs(Map.of(resource,
            List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "x"), AlterConfigOp.OpType.SET)))).all());
        attempt("listClientMetricsResources", () -> reflect(admin, "listClientMetricsResources", new Class<?>[0]));
    }

    private static void security(Admin admin, String topic) {
        AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
            new AccessControlEntry("User:someone", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBinding prefixed = new AclBinding(new ResourcePattern(ResourceType.GROUP, "g", PatternType.PREFIXED),
            new AccessControlEntry("User:someone", "*", AclOperation.ALL, AclPermissionType.DENY));
        attempt("createAcls", () -> admin.createAcls(List.of(acl, prefixed)).all());
        attempt("describeAcls", () -> admin.describeAcls(AclBindingFilter.ANY).values());
        attempt("deleteAcls", () -> admin.deleteAcls(List.of(acl.toFilter(), prefixed.toFilter())).all());
        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096);
        attempt("alterUserScramCredentials", () -> admin.alterUserScramCredentials(
            List.of(new UserScramCredentialUpsertion("someone", info, "not-a-secret"))).all());
        attempt("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all());
        attempt("alterUserScramCredentials (delete)", () -> admin.alterUserScramCredentials(
            List.of(new UserScramCredentialDeletion("someone", ScramMechanism.SCRAM_SHA_512))).all());
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "someone"));
        attempt("alterClientQuotas", () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity,
            List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all());
        attempt("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities());
        Map<String, DelegationToken> made = new HashMap<>();
        attempt("createDelegationToken", () -> {
            KafkaFuture<DelegationToken> token = admin.createDelegationToken().delegationToken();
            made.put("token", token.get(SECONDS, TimeUnit.SECONDS));
            return null;
        });
        byte[] hmac = made.isEmpty() ? "no token".getBytes(StandardCharsets.UTF_8) : made.get("token").hmac();
        attempt("renewDelegationToken", () -> admin.renewDelegationToken(hmac).expiryTimestamp());
        attempt("describeDelegationToken", () -> admin.describeDelegationToken().delegationTokens());
        attempt("expireDelegationToken", () -> admin.expireDelegationToken(hmac,
            new ExpireDelegationTokenOptions().expiryTimePeriodMs(-1)).expiryTimestamp());
    }

    private static void groups(Admin admin, String prefix, Properties properties) throws Exception {
        String group = prefix + "-classic";
        TopicPartition partition = new TopicPartition(prefix + "-none", 0);
        attempt("listConsumerGroups", () -> admin.listConsumerGroups().all());
        attempt("describeConsumerGroups", () ->
            admin.describeConsumerGroups(List.of(group, prefix + "-consumer", "no-such-group")).all());
        attempt("listConsumerGroupOffsets", () -> admin.listConsumerGroupOffsets(group).all());
        attempt("listConsumerGroupOffsets (two)", () -> admin.listConsumerGroupOffsets(Map.of(group,
            new ListConsumerGroupOffsetsSpec(), "no-such-group", new ListConsumerGroupOffsetsSpec())).all());
        attempt("alterConsumerGroupOffsets", () ->
            admin.alterConsumerGroupOffsets(group, Map.of(partition, new OffsetAndMetadata(1, "moved"))).all());
        attempt("deleteConsumerGroupOffsets", () -> admin.deleteConsumerGroupOffsets(group, Set.of(partition)).all());
        Properties member = new Properties();
        member.putAll(properties);
        member.put("group.id", group);
        member.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(member, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(prefix + "-none"));
            for (int i = 0; i < 20; i++) {
                consumer.poll(Duration.ofMillis(50));
            }
            attempt("describeConsumerGroups (live)", () -> admin.describeConsumerGroups(List.of(group)).all());
            attempt("removeMembersFromConsumerGroup", () ->
                admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all());
        }
        for (String name : new String[] {"describeStreamsGroups", "describeClassicGroups"}) {
            attempt(name, () -> reflect(admin, name, new Class<?>[] {Collection.class}, List.of(prefix + "-streams")));
        }
        attempt("deleteConsumerGroups", () -> admin.deleteConsumerGroups(List.of(group)).all());
    }

    private static void transactions(Admin admin, String prefix) {
        TopicPartition partition = new TopicPartition(prefix + "-tx", 0);
        attempt("listTransactions", () -> admin.listTransactions().all());
        attempt("describeTransactions", () -> admin.describeTransactions(List.of(prefix + "-id")).all());
        attempt("describeProducers", () -> admin.describeProducers(List.of(partition)).all());
        attempt("abortTransaction", () ->
            admin.abortTransaction(new AbortTransactionSpec(partition, 12345, (short) 0, 0)).all());
        attempt("fenceProducers", () -> admin.fenceProducers(List.of(prefix + "-id")).all());
    }

    private static void cluster(Admin admin) {
        attempt("describeCluster", () ->
            admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true)).nodes());
        attempt("describeFeatures", () -> admin.describeFeatures().featureMetadata());
        attempt("describeMetadataQuorum", () -> admin.describeMetadataQuorum().quorumInfo());
        attempt("updateFeatures", () -> admin.updateFeatures(Map.of("metadata.version",
            new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UNSAFE_DOWNGRADE)),
            new UpdateFeaturesOptions().validateOnly(true)).all());
        attempt("unregisterBroker", () -> admin.unregisterBroker(99).all());
    }
}
