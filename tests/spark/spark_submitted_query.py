"""What the test of spark-submit submits: it prints the settings of a session that names none."""

from __future__ import annotations

import json

from tanist.spark import session


def main() -> None:
    spark = session()
    names = ("spark.master", "spark.app.name", "spark.sql.session.timeZone", "spark.sql.shuffle.partitions")
    print(json.dumps({name: spark.conf.get(name) for name in names}))
    spark.stop()


if __name__ == "__main__":
    main()
