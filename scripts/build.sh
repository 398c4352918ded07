#!/usr/bin/env bash
# Configures and builds one variant: default (build/), asan, tsan or release (build-VARIANT/), and the
# further targets that are named (the unit tests are "checks"). Quiet unless something fails. PREFIX,
# if set, is where the default variant will be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

variant=${1:-default}
shift || true
dir=build-$variant
options=()
case $variant in
default)
    dir=build
    options=("--prefix=${PREFIX:-/usr/local}")
    ;;
# The sanitizers' instrumentation makes gcc warn where there is nothing: warnings are the default
# variant's business.
asan) options=('-Db_sanitize=address,undefined' -Db_lundef=false -Dwerror=false) ;;
tsan) options=(-Db_sanitize=thread -Db_lundef=false -Dwerror=false) ;;
release) options=(--buildtype=release) ;;
*)
    echo "build.sh: unknown variant '$variant': it takes default, asan, tsan or release" >&2
    exit 2
    ;;
esac

log=$dir/build.log
mkdir -p "$dir"

fail()
{
    cat "$log" >&2
    echo "build.sh: cannot build the $variant variant in $dir/" >&2
    exit 1
}

# setup.sh leaves a stamp: what it has just installed is to be found.
installed_since()
{
    local stamp
    for stamp in build/.setup-*; do
        [[ ! $stamp -nt $dir/build.ninja ]] || return 0
    done
    return 1
}

if [[ ! -f $dir/build.ninja ]]; then
    echo "configuring $dir/"
    meson setup "${options[@]}" "$dir" >"$log" 2>&1 </dev/null || fail
    echo "${PREFIX:-/usr/local}" >"$dir/.prefix"
elif [[ $variant = default && -n ${PREFIX:-} && $PREFIX != "$(cat "$dir/.prefix")" ]]; then
    meson configure "$dir" "--prefix=$PREFIX" >"$log" 2>&1 </dev/null || fail
    echo "$PREFIX" >"$dir/.prefix"
elif installed_since; then
    meson setup --reconfigure "$dir" >"$log" 2>&1 </dev/null || fail
fi

ninja=$(command -v ninja || command -v ninja-build || command -v samu)
if [[ -t 1 ]]; then
    "$ninja" -C "$dir" all "$@" || exit 1
else
    "$ninja" -C "$dir" all "$@" >"$log" 2>&1 </dev/null || fail
fi
