#!/usr/bin/env bash
# Installs tanist and starts the cluster. Later steps have `tanist` on their PATH, TANIST_DATA and TANIST_BOOTSTRAP.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
data=${INPUT_DATA:-$RUNNER_TEMP/tanist-data}
venv=$RUNNER_TEMP/tanist-venv

"${INPUT_PYTHON:-python3}" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${INPUT_PACKAGE:-$here/../..}"
mkdir -p "$venv/tools" # with nothing else of the environment on the PATH
ln -sf ../bin/tanist "$venv/tools/tanist"

options=(--brokers "${INPUT_BROKERS:-3}" --controllers "${INPUT_CONTROLLERS:-combined}" --port "${INPUT_PORT:-9092}")
while IFS= read -r line; do
    if [ -n "${line// /}" ]; then
        options+=(--config "$line")
    fi
done <<< "${INPUT_CONFIG:-}"
"$venv/bin/tanist" up --detach --data "$data" "${options[@]}"
bootstrap=$("$venv/bin/tanist" status --data "$data" --json \
    | "$venv/bin/python" -c 'import json, sys; print(json.load(sys.stdin)["bootstrap"])')

printf 'bootstrap=%s\ndata=%s\n' "$bootstrap" "$data" >> "$GITHUB_OUTPUT"
printf 'TANIST_DATA=%s\nTANIST_BOOTSTRAP=%s\n' "$data" "$bootstrap" >> "$GITHUB_ENV"
printf '%s\n' "$venv/tools" >> "$GITHUB_PATH"
