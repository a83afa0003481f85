#!/bin/sh
# What compose.yaml's server needs before it starts: a certificate and two tokens, made once, in /state.
set -eu
umask 077
cd "${STATE:-/state}"
if [ ! -e tls.crt ]; then
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 -subj /CN=ciphervec \
        -addext subjectAltName=DNS:localhost,DNS:server -keyout tls.key -out tls.crt
fi
token() { # a file, its verb
    [ -e "$1" ] || ciphervec-server token create --tokens tokens.json --collection '*' --permission "$2" --expires 90d > "$1"
}
token admin.token admin
token metrics.token metrics
# The server and Prometheus run as users of their own.
[ "$(id -u)" -ne 0 ] || chown 65532:65532 tls.key tokens.json
chmod 0755 . && chmod 0644 tls.crt metrics.token
