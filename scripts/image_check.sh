#!/usr/bin/env bash
# Proves the Dockerfile on a machine without a Docker engine: builds it with buildah on a base made with debootstrap,
# serves from the result, and runs the smoke client inside it. Needs root and a Debian mirror; takes minutes and about
# 10 GB, all of it in .image, which stays for the next run and goes with `make clean`.
#
# pip inside the build obeys the caller's PIP_CERT, PIP_FIND_LINKS (a folder), PIP_INDEX_URL and PIP_EXTRA_INDEX_URL, so
# that a CPU build of torch in a local folder spares the download of the CUDA build.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$PWD/.image
base=debian:bookworm-slim # as in the Dockerfile
image=kernel-env:check

main() {
    require_tools
    mkdir -p "$work"
    image_exists "$base" || make_base
    build
    container=$(bh from --pull-never "$image")
    trap 'bh rm "$container" >/dev/null' EXIT
    show_config
    inside kernel-env tasks list
    inside nvcc --version
    # Server and client both run inside: buildah forwards no signal, so a server started from out here would stay behind.
    # The first start calibrates, on a machine that may be busy: hence the long wait.
    inside python /run/scripts/with_server.py --wait-s 300 \
        --serve "tini -- kernel-env serve --host 127.0.0.1 --port {port}" \
        -- python /usr/local/src/kernel-env/examples/client_smoke.py --url {url}
    echo "image-check: passed"
}

require_tools() {
    local missing=()
    command -v buildah >/dev/null || missing+=(buildah)
    command -v debootstrap >/dev/null || missing+=(debootstrap)
    if ((${#missing[@]})); then
        echo "image-check: missing ${missing[*]}. On Debian: apt-get install ${missing[*]}" >&2
        exit 2
    fi
    if ((EUID != 0)); then
        echo "image-check: needs root, for debootstrap and for chroot isolation" >&2
        exit 2
    fi
}

bh() {
    buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}

# Through env, because buildah's own look-up does not follow the link to the CUDA toolkit.
inside() {
    bh run --isolation chroot --workingdir /tmp --volume "$PWD/scripts:/run/scripts:ro" "$container" -- env "$@"
}

image_exists() {
    bh inspect --type image "$1" >/dev/null 2>&1
}

make_base() {
    local container
    rm -rf "$work/base"
    debootstrap --variant=minbase bookworm "$work/base" >"$work/debootstrap.log"
    container=$(bh from scratch)
    bh add --quiet "$container" "$work/base" / >/dev/null
    bh config --cmd bash --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    bh commit --quiet --rm "$container" "$base" >/dev/null
    rm -rf "$work/base"
}

build() {
    local volumes=() conf=$work/pip.conf
    {
        echo "[global]"
        [[ -z ${PIP_INDEX_URL:-} ]] || echo "index-url = $PIP_INDEX_URL"
        [[ -z ${PIP_EXTRA_INDEX_URL:-} ]] || echo "extra-index-url = $PIP_EXTRA_INDEX_URL"
        [[ -z ${PIP_CERT:-} ]] || echo "cert = /run/pip-cert.pem"
        [[ ! -d ${PIP_FIND_LINKS:-} ]] || echo "find-links = /run/wheels"
    } >"$conf"
    [[ -z ${PIP_CERT:-} ]] || volumes+=(--volume "$(readlink -f "$PIP_CERT"):/run/pip-cert.pem:ro")
    [[ ! -d ${PIP_FIND_LINKS:-} ]] || volumes+=(--volume "$PIP_FIND_LINKS:/run/wheels:ro")
    # One layer: the vfs driver copies the whole file system for each. The docker format keeps HEALTHCHECK.
    bh bud --isolation chroot --format docker --pull-never --layers=false \
        --volume "$conf:/etc/pip.conf:ro" "${volumes[@]}" --tag "$image" .
}

show_config() {
    bh inspect --type image --format \
        'entrypoint {{.Docker.Config.Entrypoint}} cmd {{.Docker.Config.Cmd}} health {{.Docker.Config.Healthcheck}}' "$image"
}

main
