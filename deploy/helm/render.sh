#!/usr/bin/env bash
# Lints the chart, and renders it with each file of values in test/deploy/fixtures/values/ into the fixtures of the tests.
# Needs Helm 3: go install helm.sh/helm/v3/cmd/helm@v3.22.0
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
helm=${HELM:-helm}
chart=deploy/helm/model-gateway
fixtures=test/deploy/fixtures

# The digest tells the tests which state of the chart and the values a fixture comes from.
digest_of() {
  find "$chart" "$1" -type f ! -name README.md -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

for values in "$fixtures"/values/*.yaml; do
  "$helm" lint --strict --quiet "$chart" --values "$values"
  rendered=$("$helm" template gateway "$chart" --namespace models --values "$values")
  printf '# Rendered by deploy/helm/render.sh; do not edit. sha256: %s\n%s\n' "$(digest_of "$values")" "$rendered" \
    >"$fixtures/$(basename "$values")"
done
