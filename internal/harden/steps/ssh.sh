[ -x /usr/sbin/sshd ] || die "there is no /usr/sbin/sshd: sandboxes are reached over SSH"
put /etc/ssh/sshd_config.d/00-sandbox.conf 0644 <<EOF
# Of the template's hardening. The first value of a setting counts, so this file comes before all others.
PermitRootLogin prohibit-password
AllowUsers root $AGENT
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitEmptyPasswords no
HostbasedAuthentication no
IgnoreRhosts yes
X11Forwarding no
AllowAgentForwarding no
PermitTunnel no
PermitUserEnvironment no
GatewayPorts no
# Ports are forwarded for who has a key; what is forwarded back listens on the loopback only.
AllowTcpForwarding yes
PermitListen 127.0.0.1:* localhost:*
MaxAuthTries 4
MaxSessions 10
MaxStartups 10:30:60
LoginGraceTime 30
ClientAliveInterval 60
ClientAliveCountMax 5
LogLevel VERBOSE
PrintMotd no
UseDNS no
Ciphers chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,aes128-gcm@openssh.com,aes256-ctr,aes128-ctr
MACs hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512
KexAlgorithms -diffie-hellman-group1-sha1,diffie-hellman-group14-sha1,diffie-hellman-group-exchange-sha1
EOF
main=/etc/ssh/sshd_config
first=$(sed -n '/^[[:space:]]*[^#[:space:]]/{p;q;}' "$main" 2>/dev/null || :)
if ! printf '%s\n' "$first" | grep -Eiq '^[[:space:]]*include[[:space:]]+"?/etc/ssh/sshd_config\.d/\*\.conf"?[[:space:]]*$'; then
  # Before everything else: what stands before an Include wins over it.
  { echo 'Include /etc/ssh/sshd_config.d/*.conf'; [ ! -f "$main" ] || grep -Eiv '^[[:space:]]*include[[:space:]]+"?/etc/ssh/sshd_config\.d/\*\.conf"?[[:space:]]*$' "$main"; } >"$main.sandbox" || :
  chmod 644 "$main.sandbox"
  mv -f "$main.sandbox" "$main"
  changed "$main"
fi
for file in /etc/ssh/sshd_config.d/*.conf; do
  [ "$file" = /etc/ssh/sshd_config.d/00-sandbox.conf ] || die "$file is read before 00-sandbox.conf and so wins over it: take it out, or name it so that it comes later"
  break
done
# A Match block in what else there is could give somebody more.
for file in "$main" /etc/ssh/sshd_config.d/*.conf; do
  ! grep -Eiq '^[[:space:]]*match[[:space:]]' "$file" || die "$file has a Match block, which can give a user what the rest forbids: take it out"
done

# sshd says whether it can read that; it wants a key and a folder even for this.
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
ssh-keygen -q -t ed25519 -N '' -f "$t/key"
made=
[ -d /run/sshd ] || { mkdir -p -m 0755 /run/sshd; made=1; }
/usr/sbin/sshd -t -o "HostKey=$t/key" >&2 || die "sshd doesn't take its configuration"
[ -z "$made" ] || rmdir /run/sshd

mask ssh.socket
if has_unit ssh.service; then
  pull_in ssh.service multi-user.target
fi

put /etc/systemd/system/sandbox-firstboot.service 0644 <<'EOF'
#include sandbox-firstboot.service
EOF
pull_in sandbox-firstboot.service multi-user.target
