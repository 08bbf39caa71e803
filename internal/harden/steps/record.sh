file=/etc/sandbox/harden.json
old=$(cat "$file" 2>/dev/null || :)
upgraded=$(printf '%s' "$old" | sed -n 's/.*"upgraded_at":"\([^"]*\)".*/\1/p')
# A second run in the same day changes nothing.
if [ "$UPGRADED" != keep ]; then
  case $upgraded in "${UPGRADED%T*}"T*) ;; *) upgraded=$UPGRADED ;; esac
fi
put "$file" 0644 <<EOF
{"version":1,"profile":"$PROFILE","agent":"$AGENT","upgraded_at":"$upgraded","upgradable":0}
EOF
