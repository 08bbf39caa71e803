# Standard input: the lines of root's authorized_keys.
set -eu
umask 077

# A clone gets no new host keys from the node: something inside must make them before sshd starts. Where nothing does, this unit does.
units=/etc/systemd/system
if [ -d "$units" ] && ! grep -qs ssh-keygen "$units"/*.wants/* "$units"/*.requires/*; then
  (
    umask 022
    cat >"$units/sandbox-firstboot.service" <<'UNIT'
[Unit]
Description=SSH host keys of this sandbox
ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key
After=local-fs.target
Before=ssh.service ssh.socket sshd.service sshd.socket

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/ssh-keygen -A

[Install]
WantedBy=multi-user.target
UNIT
    mkdir -p "$units/multi-user.target.wants"
    ln -sf ../sandbox-firstboot.service "$units/multi-user.target.wants/sandbox-firstboot.service"
  )
fi

mkdir -p /root/.ssh
chmod 0700 /root/.ssh
cat >/root/.ssh/authorized_keys.new
chmod 0600 /root/.ssh/authorized_keys.new
mv /root/.ssh/authorized_keys.new /root/.ssh/authorized_keys
rm -f /root/.ssh/known_hosts /root/.bash_history /root/.ash_history /root/.lesshst /root/.wget-hsts

# What makes this container itself. An empty machine id is filled at the next boot.
rm -f /etc/ssh/ssh_host_*
rm -f /var/lib/systemd/random-seed /var/lib/systemd/credential.secret
if [ -e /var/lib/dbus/machine-id ]; then rm -f /var/lib/dbus/machine-id; ln -s /etc/machine-id /var/lib/dbus/machine-id; fi
if [ -e /etc/machine-id ]; then : >/etc/machine-id; fi

for k in /etc/ssh/ssh_host_*; do
  if [ -e "$k" ]; then echo "a host key is left: $k" >&2; exit 1; fi
done
echo sealed
