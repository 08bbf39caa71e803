for dir in /var/lib/apt/lists /var/cache/apt; do # their folders stay, apt wants them
  if [ -n "$(find "$dir" -type f ! -name lock -print -quit 2>/dev/null)" ]; then
    find "$dir" -type f -delete
    changed "$dir is empty"
  fi
done
empty /var/log/journal
empty /tmp
empty /var/tmp
find /var/log -xdev -type f \( -name '*.gz' -o -name '*.xz' -o -name '*.[0-9]' -o -name '*.old' \) -print | while IFS= read -r file; do remove "$file"; done
find /var/log -xdev -type f -size +0 -print | while IFS= read -r file; do
  : >"$file"
  changed "$file is empty"
done
find /var/cache -xdev -name '*.dat-old' -print | while IFS= read -r file; do remove "$file"; done
awk -F: '$3 == 0 || $3 >= 1000 && $3 < 60000 { print $6 }' /etc/passwd | while IFS= read -r home; do
  [ -d "$home" ] && [ "$home" != / ] || continue
  for name in .bash_history .ash_history .zsh_history .python_history .node_repl_history .sqlite_history .lesshst .viminfo .wget-hsts .ssh/known_hosts .ssh/known_hosts.old .cache .npm .sudo_as_admin_successful; do
    remove "$home/$name"
  done
done
remove /etc/sandbox/lease.json /var/lib/sandbox/runs /var/lib/systemd/coredump
for dir in /var/lib/dhcp /var/lib/dhcpcd; do
  [ ! -d "$dir" ] || empty "$dir"
done
for file in /etc/udev/rules.d/*persistent-net* /var/lib/systemd/timers/* /etc/.pwd.lock /etc/passwd- /etc/shadow- /etc/group- /etc/gshadow- /etc/subuid- /etc/subgid-; do
  [ ! -e "$file" ] || remove "$file"
done

# Keys: of the build's none, of the provider's those that were given.
for home in $(awk -F: '$3 >= 1000 && $3 < 60000 { print $6 }' /etc/passwd); do
  remove "$home/.ssh/authorized_keys" "$home/.ssh/authorized_keys2"
done
if [ "$KEYS" != keep ]; then
  remove /root/.ssh/authorized_keys2
  if [ "$KEYS" = none ]; then
    remove /root/.ssh/authorized_keys
  else
    [ -d /root/.ssh ] || mkdir -m 0700 /root/.ssh
    own /root/.ssh 0 0 0700
    printf '%s\n' "$PROVIDER_KEYS" | put /root/.ssh/authorized_keys 0600
  fi
fi
