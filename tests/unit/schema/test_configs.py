"""Which configuration entries are taken for secrets, by what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from kwire.schema.configs import BROKER_LOGGER, PASSWORD, PASSWORDS, is_secret

NO_SECRETS = [
    "connection.failed.authentication.delay.ms",
    "connections.max.reauth.ms",
    "delegation.token.expiry.check.interval.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.max.lifetime.ms",
    "group.consumer.assignors",
    "key.deserializer",
    "key.serializer",
    "partitioner.ignore.keys",
    "password.encoder.cipher.algorithm",
    "password.encoder.iterations",
    "password.encoder.key.length",
    "password.encoder.keyfactory.algorithm",
    "sasl.enabled.mechanisms",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "sasl.oauthbearer.allow.unverified.audience",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.client.auth",
    "ssl.keymanager.algorithm",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "zookeeper.ssl.keystore.location",
    "zookeeper.ssl.keystore.type",
    "retention.ms",
    "cleanup.policy",
    "compression.type",
    "authorizer.class.name",
    "log.dirs",
    "listeners",
    "advertised.listeners",
    "message.format.version",
    "metrics",
    "match",
]
"""Entries of Kafka that are no passwords, those that come nearest to one among them."""


@pytest.mark.parametrize("name", sorted(PASSWORDS))
def test_a_password_of_kafka_is_secret_with_anything_in_front(name: str):
    for form in (
        name,
        name.upper(),
        f"listener.name.internal.{name}",
        f"listener.name.x.plain.{name}",
        f"producer.{name}",
    ):
        for resource in (None, 2, 4, BROKER_LOGGER, 16, 32):
            assert is_secret(form, "x", sensitive=False, config_type=2, resource_type=resource)


@pytest.mark.parametrize("name", NO_SECRETS)
def test_other_entries_of_kafka_are_shown(name: str):
    assert not is_secret(name, "x", sensitive=False, resource_type=4)
    assert not is_secret(f"listener.name.internal.{name}", "x")


@pytest.mark.parametrize(
    "name",
    [
        "my.plugin.password",
        "s3.secret_access_key",
        "rsm.config.gcs.credentials.json",
        "metrics.reporter.api-key",
        "schema.registry.basic.auth.user.info",
        "vendor.license",
        "encryption.key",
        "masterkey",
        "oauth.jwt",
        "auth.token",
        "SCRAM-SHA-256",
        "db.pass",
        "azure.connection.string",
        "blob.sas",
        " my.plugin.password ",
        "ssl.key.password\t",
    ],
)
def test_what_nobody_knows_and_looks_like_a_secret_is_one(name: str):
    for resource in (None, 2, 4):
        assert is_secret(name, "x", resource_type=resource)


@pytest.mark.parametrize(
    "value",
    [
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="a";',
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII",
        "https://user:word@host/",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln",
        "host=a;Password = b",
        '{"client_secret": "a"}',
        "salt=a,stored_key=b",
        "Bearer c2VjcmV0LXRva2Vu",
        "Authorization: Bearer c2VjcmV0LXRva2Vu",
        '{"authorization": "Basic c2VjcmV0LXRva2Vu"}',
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abcd==",
        "https://a/b?sv=1&sig=abc%3D",
        "AKIAIOSFODNN7EXAMPLE",
        "user=a;pass=b",
        '{"pass": "b"}',
        "jdbc:oracle:thin:scott/tiger@//host:1521/orcl",
        'jdbc:oracle:oci8:scott/"ti/ger"@orcl',
        "ghp_0123456789abcdef0123",
    ],
)
def test_a_value_that_says_that_it_is_a_secret_is_one(value: str):
    assert is_secret("some.options", value, sensitive=False, config_type=2, resource_type=2)


@pytest.mark.parametrize(
    "value", ["bypass=true", "compass: 1", "jdbc:oracle:thin:@//host:1521/orcl", "pass", "jdbc:oracle:thin:x/y"]
)
def test_a_value_that_only_looks_like_one_is_shown(value: str):
    assert not is_secret("some.options", value)


def test_the_broker_knows_best():
    assert is_secret("retention.ms", "1", sensitive=True)
    assert is_secret("retention.ms", "1", config_type=PASSWORD)
    assert not is_secret("retention.ms", "1", sensitive=False, config_type=5)


def test_loggers_are_entries_with_the_names_of_classes():
    name = "org.apache.kafka.common.security.token.delegation.DelegationTokenSecret"
    assert not is_secret(name, "INFO", resource_type=BROKER_LOGGER)
    assert is_secret(name, "INFO", resource_type=4)


@pytest.mark.parametrize("odd", [None, 5, b"a", [], object()])
def test_an_entry_without_a_name_is_secret(odd: Any):
    assert is_secret(odd, "x")
