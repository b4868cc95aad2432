#!/usr/bin/env bash
# Build the image of the cleaner, and start it once.
#
#   build_image.sh NAME:TAG
#
# Needs Docker. The user of the image must not be root, and the cleaner must run on a read-only file system, as in the chart.
set -euo pipefail
name=${1:?usage: build_image.sh NAME:TAG}
cd "$(dirname "$0")/.."
docker build --file cleaner/Dockerfile --tag "$name" .
user=$(docker image inspect --format '{{.Config.User}}' "$name")
case $user in '' | 0 | root | *[!0-9]*) echo "the user of the image is '$user', not a number above 0" >&2; exit 1 ;; esac
docker run --rm --read-only --tmpfs /tmp --cap-drop ALL "$name" --version
