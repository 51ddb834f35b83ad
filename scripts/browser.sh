# shellcheck shell=bash
# Sourced behind lib.sh: the browser that drives the console's pages, for tests and screenshots alone.
BROWSER_PACKAGES='playwright-core@1.65.1 axe-core@4.14.1'
export THOLE_BROWSER_TOOLS=$THOLE_TOOLS/browser

# no_browser WHY
no_browser() {
    BROWSER_MISSING=$1
    return 1
}

find_chromium() {
    local candidate
    for candidate in "${CHROMIUM:-}" "$(command -v chromium || true)" "$(command -v chromium-browser || true)"; do
        if [ -n "$candidate" ] && [ -x "$candidate" ]; then
            export CHROMIUM=$candidate
            return 0
        fi
    done
    return 1
}

install_chromium() {
    [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || return 1
    say "installing chromium"
    apt_get update && apt_get install -y --no-install-recommends chromium fonts-dejavu-core && find_chromium
}

# need_browser: 0, or 1 with the reason in BROWSER_MISSING.
need_browser() {
    local version
    version=$(node --version 2>/dev/null | sed 's/^v//')
    at_least 20.11 "$version" ||
        no_browser "node 20.11 or newer is not here (found: ${version:-none}); see https://nodejs.org/en/download" || return
    find_chromium || install_chromium || no_browser "chromium is not here; set CHROMIUM to its path" || return
    [ "$(cat "$THOLE_BROWSER_TOOLS/packages" 2>/dev/null)" = "$BROWSER_PACKAGES" ] && return
    command -v npm >/dev/null || no_browser "npm is not here" || return
    say "fetching playwright-core and axe-core into build/tools"
    mkdir -p "$THOLE_BROWSER_TOOLS"
    # shellcheck disable=SC2086
    (cd "$THOLE_BROWSER_TOOLS" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 timeout -k 10 300 npm install --no-save --no-audit --no-fund --silent \
        --prefix . $BROWSER_PACKAGES >npm.log 2>&1) || no_browser "npm cannot fetch $BROWSER_PACKAGES" || return
    echo "$BROWSER_PACKAGES" >"$THOLE_BROWSER_TOOLS/packages"
}
