# Last: from here on the system is nobody's, until a clone boots.
remove /etc/ssh/ssh_host_*
remove /var/lib/systemd/random-seed /var/lib/systemd/credential.secret /var/lib/urandom/random-seed
# Empty: the next boot makes an id. "uninitialized", or no file, would be a first boot for systemd too, which then sets all
# units to the distribution's presets.
if [ -s /etc/machine-id ] || [ ! -f /etc/machine-id ] || [ -L /etc/machine-id ]; then
  put /etc/machine-id 0444 </dev/null
fi
if [ -e /var/lib/dbus/machine-id ] && [ ! -L /var/lib/dbus/machine-id ]; then
  link /etc/machine-id /var/lib/dbus/machine-id
fi
