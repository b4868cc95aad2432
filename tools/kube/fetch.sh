#!/usr/bin/env bash
# Fetch what `make kube` checks the chart with: helm, kubeconform, promtool, and schemas of Kubernetes, KEDA and the Prometheus Operator.
#
#   fetch.sh PYTHON
#
# helm and kubeconform are built from their Go modules, which takes some minutes once; go checks each module against Go's
# checksum database. promtool is unpacked from Debian's package prometheus. The schemas come from the Go modules that define them.
# Environment: LEASEQ_SERVERS_DIR the cache (default: .servers beside this repository's files); all is below its folder kube.
set -euo pipefail
python=${1:?usage: fetch.sh PYTHON}
case $python in /*) ;; *) python=$PWD/$python ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=${LEASEQ_SERVERS_DIR:-$(cd "$here/../.." && pwd)/.servers}/kube

HELM=helm.sh/helm/v3/cmd/helm@v3.19.0
KUBECONFORM=github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0
KUBERNETES=k8s.io/kubernetes@v1.34.0
KEDA=github.com/kedacore/keda/v2@v2.18.0
OPERATOR=github.com/prometheus-operator/prometheus-operator@v0.85.0

wanted="$HELM $KUBECONFORM $KUBERNETES $KEDA $OPERATOR $(cksum < "$here/schemas.py")"
if [ "$(cat "$root/fetched" 2>/dev/null)" = "$wanted" ]; then exit 0; fi
rm -rf "$root"
mkdir -p "$root/bin"
root=$(cd "$root" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

module() { # MODULE@VERSION: prints the folder of its source
  "$here/../go.sh" go mod download -json "$1" | "$python" -c 'import json, sys; print(json.load(sys.stdin)["Dir"])'
}

GOBIN=$root/bin "$here/../go.sh" go install "$KUBECONFORM"
GOBIN=$root/bin "$here/../go.sh" go install "$HELM"

if command -v promtool >/dev/null; then
  ln -s "$(command -v promtool)" "$root/bin/promtool"
else
  "$here/../debian_packages.sh" "$work/prometheus" prometheus
  cp "$work/prometheus/usr/bin/promtool" "$root/bin/promtool"
fi
"$root/bin/promtool" --version | head -1

keda=$(module "$KEDA")
install -m 644 "$keda/pkg/scalers/redis_scaler.go" "$root/redis_scaler.go"
"$python" "$here/schemas.py" "$root/schemas" "$(module "$KUBERNETES")/api/openapi-spec/swagger.json" \
  "$keda"/config/crd/bases/keda.sh_{scaledobjects,triggerauthentications}.yaml \
  "$(module "$OPERATOR")"/example/prometheus-operator-crd/monitoring.coreos.com_{servicemonitors,podmonitors,prometheusrules}.yaml
echo "$wanted" > "$root/fetched"
