# setuid and setgid bits that nobody needs: no account has a password, so su and passwd serve nobody. The override keeps
# them off when the package is upgraded.
find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run \) -prune -o -type f -perm /6000 -print | while IFS= read -r file; do
  case "
$SETUID
" in
  *"
$file
"*) [ "$(stat -c %u "$file")" != 0 ] || continue ;;
  esac
  mode=$(stat -c %a "$file")
  while [ "${#mode}" -gt 3 ]; do mode=${mode#?}; done
  if dpkg -S "$file" >/dev/null 2>&1 || dpkg -S "${file#/usr}" >/dev/null 2>&1; then
    dpkg-statoverride --quiet --force-statoverride-add --update --add "$(stat -c %U "$file")" "$(stat -c %G "$file")" "0$mode" "$file" 2>/dev/null || chmod "0$mode" "$file"
  fi
  chmod "0$mode" "$file"
  changed "$file is 0$mode"
done

find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run \) -prune -o ! -type l -perm -0002 ! \( -type d -perm -1000 \) -print | while IFS= read -r file; do
  chmod o-w "$file"
  changed "$file can't be written by everybody"
done

# What root runs and reads is root's.
find /etc /usr /opt /boot -xdev ! -type l \( -uid +999 -o -user "$AGENT" \) -print 2>/dev/null | while IFS= read -r file; do
  chown 0:0 "$file"
  changed "$file is root's"
done
for file in /etc/shadow /etc/gshadow; do
  [ ! -e "$file" ] || [ "$(stat -c '%u %a' "$file")" = '0 640' ] || { chown 0 "$file"; chmod 640 "$file"; changed "$file"; }
done

# The build's proxy and mirror settings.
for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*; do
  if [ -f "$file" ] && grep -Eiq '^[^/]*::proxy' "$file"; then
    sed -i -E '/^[^/]*::[Pp]roxy/d' "$file"
    changed "$file has no proxy"
  fi
done
