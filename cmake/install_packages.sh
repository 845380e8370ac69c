#!/usr/bin/env bash
# Installs the Debian packages given as arguments that are not there yet, and says which. Asks for sudo only when not root.
set -euo pipefail

missing=()
for package in "$@"; do
    if ! dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed; then
        missing+=("$package")
    fi
done
if [ "${#missing[@]}" -eq 0 ]; then
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif command -v sudo >/dev/null; then
    as_root=(sudo)
else
    echo "missing Debian packages, and neither root nor sudo to install them: ${missing[*]}" >&2
    exit 1
fi
echo "installing ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}")
# The package lists may be absent or old: then the first attempt fails, and the second has fresh ones.
"${install[@]}" >/dev/null 2>&1 || { "${as_root[@]}" apt-get update -qq && "${install[@]}" >/dev/null; }
