#!/usr/bin/env bash
# Stops the cluster, so that its files stand still, and packs its folder. An archive keeps modes, which uploads drop.
set -euo pipefail
data=${INPUT_DATA:-${TANIST_DATA:?there is no cluster: set the input data}}
archive=$RUNNER_TEMP/tanist-data.tar.gz

tanist logs --data "$data" --level WARN || true
tanist topics describe --data "$data" --explain || true
tanist down --data "$data" || true
tar -czf "$archive" -C "$(dirname "$data")" "$(basename "$data")"
printf 'archive=%s\n' "$archive" >> "$GITHUB_OUTPUT"
