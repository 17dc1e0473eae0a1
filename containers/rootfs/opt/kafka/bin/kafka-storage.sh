#!/bin/sh
# `kafka-storage format` and `random-uuid`.
exec tanist "$@"
