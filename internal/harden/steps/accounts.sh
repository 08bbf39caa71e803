shell=/bin/bash
[ -x "$shell" ] || shell=/bin/sh
line=$(grep "^$AGENT:" /etc/passwd || :)
if [ -z "$line" ]; then
  taken=$(awk -F: -v uid="$AGENT_UID" '$3 == uid { print $1 }' /etc/passwd)
  [ -z "$taken" ] || die "the uid $AGENT_UID for $AGENT is that of $taken already: remove that account, or choose another agent_uid"
  getent group "$AGENT" >/dev/null || groupadd -g "$AGENT_UID" "$AGENT"
  useradd -u "$AGENT_UID" -g "$AGENT" -m -k /nonexistent -d "/home/$AGENT" -s "$shell" -c "" "$AGENT" 2>/dev/null ||
    useradd -u "$AGENT_UID" -g "$AGENT" -m -d "/home/$AGENT" -s "$shell" "$AGENT"
  changed "account $AGENT"
else
  uid=$(id -u "$AGENT")
  [ "$uid" = "$AGENT_UID" ] || die "the account $AGENT is there with the uid $uid, not $AGENT_UID: files on workspaces would belong to somebody else. Remove it, or choose agent_uid = $uid"
  case $line in
  *:/bin/false | */nologin | *:) usermod -s "$shell" "$AGENT"; changed "shell of $AGENT" ;;
  esac
fi
home=$(getent passwd "$AGENT" | cut -d: -f6)
[ -d "$home" ] || { mkdir -p "$home"; changed "$home"; }
own "$home" "$AGENT_UID" "$(id -g "$AGENT")" 0700

# In no group but its own: any other could be a way to root.
keep=
[ "$PROFILE" != docker ] || ! getent group docker >/dev/null || keep=docker
for group in $(id -nG "$AGENT"); do
  if [ "$group" != "$(id -gn "$AGENT")" ] && [ "$group" != "$keep" ]; then
    gpasswd -d "$AGENT" "$group" >/dev/null
    changed "$AGENT is not in $group"
  fi
done

# "*" is no password and no lock: a key lets in, with PAM and without.
for name in $(awk -F: '$2 == "" || $2 !~ /^[!*]/ { print $1 }' /etc/shadow) root "$AGENT"; do
  if [ "$(awk -F: -v n="$name" '$1 == n { print $2 }' /etc/shadow)" != '*' ]; then
    usermod -p '*' "$name"
    changed "$name has no password"
  fi
done
own /root 0 0 0700

if [ -d /etc/sudoers.d ]; then
  for file in /etc/sudoers.d/*; do
    if [ -f "$file" ] && grep -Eq '^[[:space:]]*[^#D@[:space:]]' "$file"; then
      remove "$file"
    fi
  done
fi
if [ -f /etc/sudoers ] && grep -Eq "^[[:space:]]*($AGENT|ALL)[[:space:]]|^[^#]*NOPASSWD" /etc/sudoers; then
  sed -E "/^[[:space:]]*($AGENT|ALL)[[:space:]]/d; /^[^#]*NOPASSWD/d" /etc/sudoers >/etc/sudoers.sandbox
  ! command -v visudo >/dev/null || visudo -cqf /etc/sudoers.sandbox || die "/etc/sudoers can't be mended: see it by hand"
  chmod 440 /etc/sudoers.sandbox
  mv -f /etc/sudoers.sandbox /etc/sudoers
  changed /etc/sudoers
fi

put /etc/profile.d/sandbox.sh 0644 <<'EOF'
# Files that are made here are nobody else's.
umask 027
EOF
if [ -f /etc/login.defs ] && ! grep -q '^UMASK[[:space:]]*027$' /etc/login.defs; then
  sed -i 's/^UMASK.*/UMASK 027/' /etc/login.defs
  grep -q '^UMASK' /etc/login.defs || echo 'UMASK 027' >>/etc/login.defs
  changed /etc/login.defs
fi
