#!/usr/bin/env bash
# Sets up everything Fogline needs on a Debian machine: a JDK, a C compiler, Mosquitto, PostgreSQL
# (for the tests), the Python packages in .venv, the connector jar, the broker's journal and the
# classes that Java maps at its start. It installs only what is missing and leaves no service running.
# When everything is in place it does nothing and takes well under a second.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PATH:/usr/sbin:/sbin"

readonly VENV=.venv
readonly STAMP=$VENV/.fogline-setup

say() { printf 'setup: %s\n' "$*"; }

fail() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

# The stamp holds what the set-up depended on; the folder counts because scripts in .venv name it.
fingerprint() {
    { pwd && cat pyproject.toml constraints.txt scripts/setup.sh; } | sha256sum
}

is_current() {
    [[ -x $VENV/bin/fogline && -f $STAMP && $(<"$STAMP") == "$(fingerprint)" ]] &&
        type -P java javac gcc mosquitto >/dev/null && has_postgresql
}

# The first Python that is new enough, or nothing.
find_python() {
    local candidate
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
}

has_jdk() {
    local version
    command -v java >/dev/null && version=$(javac -version 2>&1) || return 1
    version=${version#javac }
    [[ ${version%%.*} =~ ^[0-9]+$ ]] && ((${version%%.*} >= 17))
}

# Debian keeps PostgreSQL's programs out of the PATH, one folder a version.
has_postgresql() {
    compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null
}

# The JDK's package: 17 where this Debian has it, otherwise 21, which Spark supports as well.
jdk_package() {
    if [[ -n $(apt-cache search --names-only '^openjdk-17-jdk-headless$' 2>/dev/null) ]]; then
        echo openjdk-17-jdk-headless
    elif [[ -n $(apt-cache search --names-only '^openjdk-21-jdk-headless$' 2>/dev/null) ]]; then
        echo openjdk-21-jdk-headless
    else
        echo openjdk-17-jdk-headless
    fi
}

missing_packages() {
    local python
    python=$(find_python)
    if [[ -z $python ]]; then
        echo python3 python3-venv
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        echo python3-venv
    fi
    has_jdk || jdk_package
    command -v gcc >/dev/null || echo gcc
    [[ -f /usr/include/stdio.h ]] || echo libc6-dev
    [[ -f /usr/include/mosquitto_broker.h ]] || echo mosquitto-dev
    command -v mosquitto >/dev/null || echo mosquitto
    command -v mosquitto_pub >/dev/null || echo mosquitto-clients
    has_postgresql || echo postgresql
}

# Debian starts a broker on port 1883 when mosquitto is installed, and a database on port 5432 with
# postgresql. Fogline starts its own when it needs one, so the services of what is installed are
# masked meanwhile, and left disabled.
without_services() {
    local service
    for service in $2; do
        if [[ $1 == before && -d /run/systemd/system ]]; then
            systemctl --quiet mask "$service.service" 2>/dev/null || true
        elif [[ $1 == after ]]; then
            if [[ -d /run/systemd/system ]]; then
                systemctl --quiet unmask "$service.service" 2>/dev/null || true
            else
                service "$service" stop >/dev/null 2>&1 || true
            fi
            update-rc.d "$service" disable >/dev/null 2>&1 || true
        fi
    done
}

install_packages() {
    local package services="" runlevel=()
    for package in "$@"; do
        [[ $package != mosquitto && $package != postgresql ]] || services+=" $package"
    done
    [[ -z $services ]] || runlevel=(RUNLEVEL=1)
    say "installing Debian packages: $*"
    without_services before "$services"
    env "${runlevel[@]}" DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --quiet=2 --no-install-recommends "$@" >/dev/null
    without_services after "$services"
}

ensure_packages() {
    local missing
    mapfile -t missing < <(missing_packages | tr ' ' '\n')
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null ||
        fail "needed and missing: ${missing[*]} (Debian names); install them and run this again"
    ((EUID == 0)) ||
        fail "needed and missing; run: sudo apt-get install --no-install-recommends ${missing[*]}"
    say "reading the lists of Debian packages"
    apt-get update --quiet=2 >/dev/null
    mapfile -t missing < <(missing_packages | tr ' ' '\n')
    install_packages "${missing[@]}"
    mapfile -t missing < <(missing_packages | tr ' ' '\n')
    ((${#missing[@]} == 0)) || fail "still missing after the installation: ${missing[*]}"
}

ensure_venv() {
    if "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    say "making the virtual environment $VENV"
    "$(find_python)" -m venv --clear "$VENV"
}

install_python_packages() {
    say "installing the Python packages (Spark is about 450 MB: some minutes the first time)"
    # The variables make the versions hold for the packages that build other packages, too.
    PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
        PIP_DISABLE_PIP_VERSION_CHECK=1 \
        "$VENV/bin/python" -m pip install -qq --editable '.[dev]'
}

if ! is_current; then
    ensure_packages
    ensure_venv
    install_python_packages
    fingerprint >"$STAMP"
    say "done"
fi
"$VENV/bin/python" connector/build.py
"$VENV/bin/python" native/build.py
readonly CONNECTOR=src/fogline/spark/fogline-connector
[[ $CONNECTOR.jsa -nt $CONNECTOR.jar ]] || "$VENV/bin/python" -m fogline.spark.class_cache
