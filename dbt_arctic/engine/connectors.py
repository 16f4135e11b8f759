"""The jars of readers that are not a part of Spark, by the name under which settings list them."""

from __future__ import annotations

from collections.abc import Mapping

POSTGRES_DRIVER = "org.postgresql:postgresql:42.7.14"
MARIADB_DRIVER = "org.mariadb.jdbc:mariadb-java-client:3.5.6"
AWS_BUNDLE = "org.apache.iceberg:iceberg-aws-bundle"
"""Has the version of the runtime, and contains S3 and Glue."""
S3 = "s3"
"""The connector with which Hadoop reads files in S3."""

CONNECTORS: Mapping[str, tuple[str, ...]] = {
    # All that Spark lacks: the class path of a local Spark has these jars only.
    "kafka": (
        "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.1",
        "org.apache.kafka:kafka-clients:3.9.1",
        "org.apache.commons:commons-pool2:2.12.1",
    ),
    "avro": ("org.apache.spark:spark-avro_2.13:4.1.1",),
    "postgresql": (POSTGRES_DRIVER,),
    "mariadb": (MARIADB_DRIVER,),
    # Hadoop's client depends on a bundle of the AWS SDK of 600 MB. Iceberg's bundle has all that reading
    # needs, except for two modules, which have to be of the same version of the SDK.
    S3: (
        "org.apache.hadoop:hadoop-aws:3.4.2",
        "software.amazon.awssdk:s3-transfer-manager:2.54.17",
        "software.amazon.awssdk:apache-client:2.54.17",
        f"{AWS_BUNDLE}:1.12.0",
    ),
}
"""The jars by connector. All but ``s3`` are named after the format of a reader."""

EXCLUDED: Mapping[str, tuple[str, ...]] = {
    S3: (
        *(
            f"software.amazon.awssdk:{name}"
            for name in (
                *("annotations", "auth", "aws-core", "bundle", "http-client-spi", "json-utils"),
                *("metrics-spi", "protocol-core", "regions", "s3", "sdk-core", "utils"),
            )
        ),
        "software.amazon.awssdk.crt:aws-crt",
        "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3",
        "org.wildfly.openssl:wildfly-openssl",
        "org.apache.httpcomponents:httpclient",
        "org.apache.httpcomponents:httpcore",
        "commons-codec:commons-codec",
    ),
}
"""What Ivy would download in addition, by connector: it is in Iceberg's bundle or in Spark, or not needed."""

__all__ = ["AWS_BUNDLE", "CONNECTORS", "EXCLUDED", "MARIADB_DRIVER", "POSTGRES_DRIVER", "S3"]
