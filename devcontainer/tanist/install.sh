#!/bin/sh
# Installs tanist when the dev container is built. PACKAGE and BROKERS are the feature's options, PREFIX and DATA for
# tests. No package index has tanist yet: its wheel lies beside this script.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${PREFIX:-/usr/local}
data=${DATA:-/var/lib/tanist}

python=
for each in python3.14 python3.13 python3.12 python3.11 python3; do
    if command -v "$each" > /dev/null && "$each" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then
        python=$each
        break
    fi
done
if [ -z "$python" ]; then
    echo "tanist needs Python 3.11 or later with venv: add the feature ghcr.io/devcontainers/features/python" >&2
    exit 1
fi
package=${PACKAGE:-}
if [ -z "$package" ]; then
    for each in "$here"/tanist-*.whl; do
        if [ -f "$each" ]; then
            package="${each}[pytest]"
        fi
    done
fi
if [ -z "$package" ]; then
    echo "no wheel of tanist in $here: \`make wheel\` in its checkout makes one, dist/tanist-*.whl" >&2
    exit 1
fi
"$python" -m venv "$prefix/lib/tanist"
"$prefix/lib/tanist/bin/python" -m pip install --quiet --disable-pip-version-check "$package"
mkdir -p "$prefix/bin" "$prefix/share/tanist" "$data"
ln -sf "$prefix/lib/tanist/bin/tanist" "$prefix/bin/tanist"
if [ -n "${_REMOTE_USER:-}" ] && [ "$(id -u)" = 0 ]; then
    chown "$_REMOTE_USER" "$data"
fi

# At each start of the container: the cluster, then the container's own command.
cat > "$prefix/share/tanist/start.sh" << SCRIPT
#!/bin/sh
if [ "${BROKERS:-3}" != 0 ]; then
    "$prefix/bin/tanist" up --detach --brokers "${BROKERS:-3}" --data "$data/cluster" > "$data/start.log" 2>&1 \\
        || cat "$data/start.log" >&2
fi
exec "\$@"
SCRIPT
chmod +x "$prefix/share/tanist/start.sh"
