#!/usr/bin/env bash
# Prepares a Proxmox VE 8 or 9 node for sandboxes. Run it on the node, as root:
#
#   ./bootstrap.sh            shows what it would do, and changes nothing
#   ./bootstrap.sh --apply    does it; a second time it finds nothing to do
#   ./bootstrap.sh --undo     shows what it would take away; with --apply it does
#
# It makes: least-privilege roles, a user with a privilege-separated token, a Proxmox pool, the ACLs; a bridge of the sandboxes'
# own with masquerading, on which the node runs neither resolver nor DHCP; a node rule that keeps sandboxes off the node, and the
# firewall's "management" set; and, where keys are given, a login "sandbox-node" that can do nothing but port exposures (one key)
# or forward to sandboxes' SSH ports (another). At the end it prints a provider block and a Packer variable file.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: bootstrap.sh [--apply] [--undo] [options]

  --user NAME@REALM     account to make                                   (sandbox@pve)
  --token NAME          its API token                                     (terraform)
  --pool ID             Proxmox pool of the sandboxes                     (sandbox)
  --role-prefix TEXT    what the roles' names begin with                  (Sandbox)
  --node NAME           this node                                         (its host name)
  --storage ID          storage of root disks                 (the first one that takes them)
  --backup-storage ID   storage of backups                    (the first one that takes them)
  --file-storage ID     storage of template files             (the first one that takes them)
  --template ID         id of the template                                (9000)
  --bridge NAME         bridge to make                                    (vmbr1)
  --network A.B.0.0/16  its network, a /16; the node is .0.1              (10.77.0.0/16)
  --first-vmid ID       first id of the sandboxes                         (100000)
  --sandboxes N         how many ids and addresses, 1 to 4096             (256)
  --management CIDR     administrators' address, for the firewall's set   (where this SSH session comes from); may be repeated
  --enable-firewall     turn the datacenter's firewall on; otherwise the command is printed
  --node-key KEY        public key or file: port exposures on this node
  --jump-key KEY        public key or file: jump host to the sandboxes' SSH ports
  --owner NAME          owner in the provider block                       (the host name)
  --print-gate          print the program behind the node key, and end
TEXT
}

# ---------------------------------------------------------------- what to make

apply=no undo=no enable_firewall=no
user=sandbox@pve token=terraform pool=sandbox prefix=Sandbox
node='' storage='' backup_storage='' file_storage='' template=9000
bridge=vmbr1 network=10.77.0.0/16 first_vmid=100000 sandboxes=256
management=() node_key='' jump_key='' owner=''
login=sandbox-node
mark='sandbox bootstrap' # in comments, so that --undo knows what is ours

root=${SANDBOX_BOOTSTRAP_ROOT:-} # another root for files, for tests
home=/var/lib/$login
gate=/usr/local/lib/sandbox-node/gate
nat_unit=/etc/systemd/system/sandbox-nat.service
forward_conf=/etc/sysctl.d/90-sandbox.conf

# What each role may, and nothing else: what data "sandbox_preflight" asks for.
declare -A privileges=(
  [Guests]='VM.Allocate VM.Audit VM.Backup VM.Config.CPU VM.Config.Disk VM.Config.Memory VM.Config.Network VM.Config.Options VM.Migrate VM.PowerMgmt VM.Snapshot'
  [Template]='VM.Audit VM.Clone'
  [Storage]='Datastore.AllocateSpace Datastore.Audit'
  [Backups]='Datastore.AllocateSpace'
  [Files]='Datastore.AllocateTemplate Datastore.Audit'
  [Bridge]='SDN.Use'
  [Cluster]='Sys.Audit'
  [Node]='Sys.AccessNetwork'
)
roles=(Guests Template Storage Backups Files Bridge Cluster Node)

fail() { echo "bootstrap.sh: $*" >&2; exit 1; }
say() { printf '%s\n' "$*"; }
there() { say "  there   $*"; }

# change TEXT COMMAND…: says what, and does it when --apply was given.
change() {
  local text=$1
  shift
  if [ "$apply" = yes ]; then
    say "  doing   $text"
    "$@"
  else
    say "  would   $text"
  fi
}

# ---------------------------------------------------------------- asking

# rows FIELD…: the records of a JSON list (or object) on standard input, as lines of these fields with a space between.
rows() {
  perl -MJSON::PP -e '
    local $/; my $data = JSON::PP->new->utf8->decode(<STDIN> || "[]");
    print join(" ", map { $_ // "" } @$_{@ARGV}), "\n" for ref $data eq "ARRAY" ? @$data : ($data);' "$@"
}

# line TEXT LINES: whether one of the lines is TEXT. first FIELDS LINES: what stands after FIELDS in the first line that begins so.
line() { [[ $'\n'$2$'\n' == *$'\n'"$1"$'\n'* ]]; }
first() {
  local l
  while IFS= read -r l; do
    if [[ $l == "$1 "* ]]; then printf '%s' "${l#"$1 "}"; return; fi
  done <<<"$2"
}

pveum_list() { pveum "$@" --output-format json; }
ask() { pvesh get "$@" --output-format json; }

storage_for() { # content type
  ask "/nodes/$node/storage" --content "$1" --enabled 1 | rows storage | LC_ALL=C sort | head -n 1
}

key_of() { # a public key, or a file that holds one
  local key=$1
  if [ -f "$key" ]; then key=$(cat "$key"); fi
  case $key in
    ssh-ed25519\ * | ssh-rsa\ * | ecdsa-sha2-* | sk-*) ;;
    *) fail "this is no public key: $1" ;;
  esac
  case $key in *$'\n'* | *\"*) fail "a public key is one line without quotes: $1" ;; esac
  printf '%s' "$key"
}

# address INDEX: the INDEX-th address of the sandboxes, from A.B.1.0 on.
address() { printf '%s.%d.%d' "$net2" $((1 + $1 / 256)) $(($1 % 256)); }

# ---------------------------------------------------------------- roles, user, token, pool, rights

make_roles() {
  say "Roles"
  local name have want list
  list=$(pveum_list role list | rows roleid privs)
  for name in "${roles[@]}"; do
    want=${privileges[$name]}
    have=$(first "$prefix$name" "$list")
    if [ "${have//,/ }" = "$want" ]; then # both in the order of the alphabet
      there "role $prefix$name"
    elif [[ $'\n'$list == *$'\n'"$prefix$name "* ]]; then
      change "role $prefix$name gets: $want" pveum role modify "$prefix$name" --privs "$want"
    else
      change "role $prefix$name: $want" pveum role add "$prefix$name" --privs "$want"
    fi
  done
}

make_account() {
  say "Account"
  local tokens=''
  if line "$user" "$(pveum_list user list | rows userid)"; then
    there "user $user"
    tokens=$(pveum_list user token list "$user" | rows tokenid privsep)
  else
    change "user $user" pveum user add "$user" --comment "$mark"
  fi
  if line "$pool" "$(pveum_list pool list | rows poolid)"; then
    there "pool $pool"
  else
    change "pool $pool" pveum pool add "$pool" --comment "$mark"
  fi
  case $(first "$token" "$tokens") in
    1) there "token $user!$token (its value was shown when it was made)" ;;
    0) change "token $user!$token gets privilege separation" pveum user token modify "$user" "$token" --privsep 1 ;;
    *) change "token $user!$token, with privilege separation" make_token ;;
  esac
}

make_token() {
  secret=$(pveum user token add "$user" "$token" --privsep 1 --comment "$mark" --output-format json | rows value)
  [ -n "$secret" ] || fail "the server showed no value for the token"
}

# every grant: a path, a role, whether it counts below the path.
grants() {
  # The templates that Packer builds are in the pool, each with an id of its own.
  printf '%s\n' "/pool/$pool ${prefix}Guests 1" "/pool/$pool ${prefix}Template 1" "/vms/$template ${prefix}Template 1" "/storage/$storage ${prefix}Storage 1" \
    "/storage/$backup_storage ${prefix}Backups 1" "/storage/$file_storage ${prefix}Files 1" \
    "/sdn/zones/localnetwork/$bridge ${prefix}Bridge 1" "/ ${prefix}Cluster 0" "/nodes/$node ${prefix}Node 1"
}

make_rights() {
  say "Rights, for the user and for the token itself"
  local list path role propagate
  list=$(pveum_list acl list | rows path roleid propagate ugid)
  while read -r path role propagate; do
    if line "$path $role $propagate $user" "$list" && line "$path $role $propagate $user!$token" "$list"; then
      there "$role on $path"
    else
      change "$role on $path for $user and $user!$token" pveum acl modify "$path" --users "$user" --tokens "$user!$token" --roles "$role" --propagate "$propagate"
    fi
  done < <(grants)
}

# ---------------------------------------------------------------- network

check_network() {
  local route
  while read -r route; do
    case $route in
      '' | default\ * | *" dev $bridge"*) ;;
      *) fail "the node has a route into $network already: $route. Choose another --network" ;;
    esac
  done < <(ip -4 route show to root "$network"; ip -4 route show to match "$net2.0.1")
}

make_bridge() {
  say "Bridge"
  if line "$bridge" "$(ask "/nodes/$node/network" | rows iface)"; then
    there "bridge $bridge"
    return
  fi
  [ ! -e "$root/etc/network/interfaces.new" ] || fail "the node's network has changes that wait to be applied; apply or revert them first"
  change "bridge $bridge, $net2.0.1/16, without a port to the outside; no resolver and no DHCP on it" make_bridge_now
}

make_bridge_now() {
  pvesh create "/nodes/$node/network" --iface "$bridge" --type bridge --cidr "$net2.0.1/16" --autostart 1 --comments "$mark"
  pvesh set "/nodes/$node/network"
}

nat_unit_text() {
  cat <<TEXT
# $mark
[Unit]
Description=Masquerading for sandboxes on $bridge
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/iptables -w -t nat -A POSTROUTING -s $network ! -d $network -j MASQUERADE
# Guests with a firewall of their own are tracked twice; without a zone of its own the reply finds no entry.
ExecStart=/usr/sbin/iptables -w -t raw -I PREROUTING -i fwbr+ -j CT --zone 1
ExecStop=/usr/sbin/iptables -w -t nat -D POSTROUTING -s $network ! -d $network -j MASQUERADE
ExecStop=/usr/sbin/iptables -w -t raw -D PREROUTING -i fwbr+ -j CT --zone 1

[Install]
WantedBy=multi-user.target
TEXT
}

# write_file PATH MODE: standard input, atomically.
write_file() {
  local target=$root$1
  mkdir -p "$(dirname "$target")"
  cat >"$target.new"
  chmod "$2" "$target.new"
  mv "$target.new" "$target"
}

same_file() { [ -f "$root$1" ] && [ "$(cat "$root$1")" = "$2" ]; }

make_nat() {
  say "Masquerading"
  local forward="# $mark"$'\n''net.ipv4.ip_forward = 1'
  if same_file "$forward_conf" "$forward"; then
    there "$forward_conf"
  else
    change "IPv4 forwarding ($forward_conf)" make_forward "$forward"
  fi
  if same_file "$nat_unit" "$(nat_unit_text)"; then
    there "$nat_unit"
  else
    change "masquerading of $network ($nat_unit)" make_nat_now
  fi
}

make_forward() {
  write_file "$forward_conf" 0644 <<<"$1"
  sysctl -q -p "$root$forward_conf"
}

make_nat_now() {
  if [ -f "$root$nat_unit" ]; then systemctl stop sandbox-nat.service; fi # with the rules that it made
  nat_unit_text | write_file "$nat_unit" 0644
  systemctl daemon-reload
  systemctl enable --now sandbox-nat.service
}

# ---------------------------------------------------------------- firewall

make_firewall() {
  say "Firewall"
  local cidr entries=''
  if line management "$(ask /cluster/firewall/ipset | rows name)"; then
    there 'IP set "management"'
    entries=$(ask /cluster/firewall/ipset/management | rows cidr)
  else
    change 'IP set "management": who may reach the nodes' pvesh create /cluster/firewall/ipset --name management --comment "$mark"
  fi
  if [[ $'\n'$entries == *$'\n'"$net2."* ]]; then
    fail "the management set holds addresses of sandboxes: take them out, or the node is open to them"
  fi
  for cidr in "${management[@]}"; do
    if line "${cidr%/32}" "$entries" || line "$cidr" "$entries"; then
      there "$cidr in it"
    else
      change "$cidr in it" pvesh create /cluster/firewall/ipset/management --cidr "$cidr" --comment "$mark"
    fi
  done
  if line "$bridge DROP 1 $mark" "$(ask "/nodes/$node/firewall/rules" | rows iface action enable comment)"; then
    there "node rule: nothing from $bridge to the node"
  else
    # It is inserted at the top, before the rules that let the node's own networks in.
    change "node rule: nothing from $bridge to the node" \
      pvesh create "/nodes/$node/firewall/rules" --type in --action DROP --iface "$bridge" --enable 1 --comment "$mark"
  fi
  if [[ $(ask /cluster/firewall/options | rows enable) == *[1-9]* ]]; then
    there "the datacenter's firewall is on"
  elif [ "$enable_firewall" = yes ]; then
    [ ${#management[@]} -gt 0 ] || fail "without --management nobody could reach the nodes once the firewall is on"
    change "the datacenter's firewall on" pvesh set /cluster/firewall/options --enable 1
  else
    say "  NOTE    the datacenter's firewall is off: nothing filters sandboxes. Look at the nodes' rules, then:"
    say "          pvesh set /cluster/firewall/options --enable 1      (or run this with --enable-firewall)"
  fi
}

# ---------------------------------------------------------------- the restricted login

# What the node key runs, whatever the client asks for. systemd's user manager of the login holds the exposures: no root.
gate_text() {
  cat <<'TEXT'
#!/bin/sh
# What the login sandbox-node may do; its key's forced command. The provider that logs in as root runs the same program.
#   expose VMID PORT LISTEN_ADDRESS LISTEN_PORT TARGET_ADDRESS CLAIM VIA   a port of a sandbox on this node; VIA is direct or tailscale
#   unexpose VMID PORT CLAIM                                               away with it
#   list                                                                   one line each: name listen target state claim via
#   show VMID PORT                                                         the same for one, and what its target answers
#   ports                                                                  the addresses and ports that are listened on
#   source TARGET_ADDRESS                                                  the address from which the node reaches a sandbox
#   tailnet                                                                the node's name in its tailnet
# It ends with 64 for a request that is none, 66 for what isn't there, 69 when systemd or Tailscale refuse, 73 for what is
# another sandbox's, 75 for a port that is taken.
set -eu
prefix=@PREFIX@
if [ -n "$prefix" ]; then
  units="${HOME:?}/.config/systemd/user" scope=--user
  XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
  export XDG_RUNTIME_DIR
else
  units=/etc/systemd/system scope=--system
fi

end() { code=$1; shift; echo "sandbox-node: $*" >&2; exit "$code"; }
refuse() { end 64 "$@"; }
number() { # value least most name
  case $1 in '' | *[!0-9]* | 0* | ??????????*) refuse "$4 must be a number" ;; esac
  if [ "$1" -lt "$2" ] || [ "$1" -gt "$3" ]; then refuse "$4 must lie between $2 and $3"; fi
}
ipv4() { # value name
  case $1 in *[!0-9.]* | *..* | .* | *. | *.*.*.*.*) refuse "$2 must be an IPv4 address" ;; *.*.*.*) ;; *) refuse "$2 must be an IPv4 address" ;; esac
  rest=$1.
  while [ -n "$rest" ]; do
    octet=${rest%%.*} rest=${rest#*.}
    case $octet in ????* | '' | 0?*) refuse "$2 must be an IPv4 address" ;; esac
    if [ "$octet" -gt 255 ]; then refuse "$2 must be an IPv4 address"; fi
  done
}
claim() {
  case $1 in *[!a-z2-7]*) refuse "the claim must be 26 characters of a-z and 2-7" ;; esac
  [ "${#1}" -eq 26 ] || refuse "the claim must be 26 characters of a-z and 2-7"
}
ask() { systemctl "$scope" "$@"; }
field() { sed -n "s/^$2=//p" "$units/$1.socket" 2>/dev/null | head -n 1; }
target() { sed -n 's/.*socket-proxyd //p' "$units/$1.service" 2>/dev/null | head -n 1; }
listening() { ss -Hltn | while read -r _ _ _ local _; do echo "$local"; done; }
published() { # name
  served=$(field "$1" ListenStream) served=${served##*:}
  tailscale serve status --json 2>/dev/null | grep -q "\"$served\""
}
line() { # name
  state=$(ask is-active "$1.socket" 2>/dev/null || true) via=$(field "$1" Via)
  if [ "$state" = active ] && [ "$via" = tailscale ] && ! published "$1"; then state=unpublished; fi
  t=$(target "$1") c=$(field "$1" Claim)
  printf '%s %s %s %s %s %s' "$1" "$(field "$1" ListenStream)" "${t:--}" "${state:-unknown}" "${c:--}" "${via:--}"
}
remove() { # name
  if [ "$(field "$1" Via)" = tailscale ]; then
    served=$(field "$1" ListenStream)
    tailscale serve --tcp="${served##*:}" off >/dev/null 2>&1 || true
  fi
  ask disable --quiet --now "$1.socket" 2>/dev/null || true
  ask stop "$1.service" 2>/dev/null || true
  rm -f "$units/$1.socket" "$units/$1.service"
  ask daemon-reload
}
owned() { # name claim
  c=$(field "$1" Claim)
  [ "${c:-$2}" = "$2" ] || end 73 "$1 is another sandbox's"
}
taken() { # listen name: by whom an address and port are taken, if they are
  for other in "$units"/sbx-*.socket; do
    [ -e "$other" ] || continue
    other=${other##*/} other=${other%.socket}
    if [ "$other" != "$2" ] && [ "$(field "$other" ListenStream)" = "$1" ]; then echo "$other"; return; fi
  done
  if [ "$(field "$2" ListenStream)" = "$1" ] && [ "$(ask is-active "$2.socket" 2>/dev/null)" = active ]; then return; fi
  listening | while read -r local; do
    case $local in "$1" | "0.0.0.0:${1##*:}" | "*:${1##*:}" | "[::]:${1##*:}") echo "another program ($local)"; break ;; esac
  done
}

# The request is split into words and nothing else: no quotes, no patterns, no second command.
set -f
case ${SSH_ORIGINAL_COMMAND:-} in *[!A-Za-z0-9.\ -]*) refuse "unexpected characters" ;; esac
# shellcheck disable=SC2086 # to be split
set -- ${SSH_ORIGINAL_COMMAND:-}
case "${1:-} $#" in
  "expose 8")
    number "$2" 100 999999999 "the id"
    number "$3" 1 65535 "the port"
    ipv4 "$4" "the address to listen on"
    number "$5" 1 65535 "the port to listen on"
    ipv4 "$6" "the sandbox's address"
    claim "$7"
    case $8 in direct) ;; tailscale) case $4 in 127.*) ;; *) refuse "what Tailscale publishes listens on 127.0.0.1" ;; esac ;; *) refuse "the way must be direct or tailscale" ;; esac
    sandboxed=
    if [ -n "$prefix" ]; then
      [ "$5" -ge 1024 ] || refuse "the port to listen on must lie between 1024 and 65535"
      case $6 in "$prefix".*) ;; *) refuse "$6 is no sandbox's address" ;; esac
      case $4 in "$prefix".*) refuse "sandboxes must not reach each other's exposures" ;; 0.*) refuse "not on every address" ;; esac
    else
      sandboxed='DynamicUser=yes\nNoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateDevices=yes\nCapabilityBoundingSet=\n'
    fi
    name=sbx-$2-$3
    set +f
    owned "$name" "$7"
    by=$(taken "$4:$5" "$name")
    [ -z "$by" ] || end 75 "$4:$5 is taken by $by"
    mkdir -p "$units"
    if [ -e "$units/$name.socket" ]; then remove "$name"; fi
    printf '[Unit]\nDescription=Port %s of sandbox %s\n\n[Socket]\nListenStream=%s:%s\n\n[Install]\nWantedBy=sockets.target\n\n[X-Sandbox]\nClaim=%s\nVia=%s\n' \
      "$3" "$2" "$4" "$5" "$7" "$8" >"$units/$name.socket"
    # shellcheck disable=SC2059 # its line ends
    printf "[Unit]\nDescription=Port $3 of sandbox $2\nRequires=$name.socket\nAfter=$name.socket\n\n[Service]\n${sandboxed}ExecStart=/lib/systemd/systemd-socket-proxyd %s:%s\n" "$6" "$3" >"$units/$name.service"
    ask daemon-reload
    if ! said=$(ask enable --quiet --now "$name.socket" 2>&1); then
      by=$(taken "$4:$5" "$name")
      remove "$name"
      [ -z "$by" ] || end 75 "$4:$5 is taken by $by"
      end 69 "systemd doesn't listen on $4:$5: $said"
    fi
    if [ "$8" = tailscale ] && ! said=$(tailscale serve --bg --tcp="$5" "tcp://127.0.0.1:$5" 2>&1); then
      remove "$name"
      end 69 "tailscale doesn't serve port $5: $said"
    fi
    line "$name"
    echo
    ;;
  "unexpose 4")
    number "$2" 100 999999999 "the id"
    number "$3" 1 65535 "the port"
    claim "$4"
    name=sbx-$2-$3
    if [ -e "$units/$name.socket" ] || [ -e "$units/$name.service" ]; then
      owned "$name" "$4"
      remove "$name"
    fi
    ;;
  "list 1")
    set +f
    for socket in "$units"/sbx-*.socket; do
      [ -e "$socket" ] || continue
      name=${socket##*/}
      line "${name%.socket}"
      echo
    done
    ;;
  "show 3")
    number "$2" 100 999999999 "the id"
    number "$3" 1 65535 "the port"
    name=sbx-$2-$3
    [ -e "$units/$name.socket" ] || end 66 "there is no $name"
    line "$name"
    t=$(target "$name") answer=0
    # shellcheck disable=SC2016 # bash's to expand
    timeout 3 bash -c ': <"/dev/tcp/${1%:*}/${1##*:}"' probe "$t" 2>/dev/null || answer=$?
    case $answer in 0) echo " open" ;; 124) echo " silent" ;; *) echo " refused" ;; esac
    ;;
  "ports 1") listening ;;
  "source 2")
    ipv4 "$2" "the sandbox's address"
    case $2 in "$prefix".* | "${prefix:-$2}") ;; *) refuse "$2 is no sandbox's address" ;; esac
    ip -4 route get "$2" | sed -n 's/.* src \([0-9.]*\).*/\1/p' | head -n 1
    ;;
  "tailnet 1")
    host=$(tailscale status --json --peers=false 2>/dev/null | sed -n 's/.*"DNSName": *"\([A-Za-z0-9.-]*[A-Za-z0-9]\)\.*".*/\1/p' | head -n 1)
    [ -n "$host" ] || end 69 "Tailscale isn't up on this node"
    echo "$host"
    ;;
  *) refuse "this login knows expose, unexpose, list, show, ports, source and tailnet" ;;
esac
TEXT
}

gate_program() { gate_text | sed "s/@PREFIX@/$net2/"; }

# The jump key opens the sandboxes' SSH ports and nothing else. sshd takes no patterns there, so each address is named;
# and no "nothing" for ports to listen on, so the one that is named is root's alone.
authorized_keys_text() {
  local i opens=''
  echo "# $mark"
  if [ -n "$node_key" ]; then
    printf 'restrict,command="%s" %s\n' "$gate" "$node_key"
  fi
  if [ -n "$jump_key" ]; then
    for ((i = 0; i < sandboxes; i++)); do opens+=",permitopen=\"$(address "$i"):22\""; done
    printf 'restrict,port-forwarding,permitlisten="localhost:1"%s,command="/usr/sbin/nologin" %s\n' "$opens" "$jump_key"
  fi
}

make_login() {
  say "Login $login"
  if [ -z "$node_key$jump_key" ]; then
    say "  skipped (no --node-key and no --jump-key: make them with ssh-keygen -t ed25519 where Terraform runs)"
    return
  fi
  if id "$login" >/dev/null 2>&1; then
    there "user $login"
  else
    change "user $login, without a password" make_login_now
  fi
  if same_file "$gate" "$(gate_program)"; then
    there "$gate"
  else
    change "$gate: expose, unexpose, list" make_gate
  fi
  if same_file "$home/.ssh/authorized_keys" "$(authorized_keys_text)"; then
    there "its keys"
  else
    change "its keys: ${node_key:+port exposures}${node_key:+${jump_key:+ and }}${jump_key:+jump host to $sandboxes addresses}" make_keys
  fi
}

make_login_now() {
  useradd --system --create-home --home-dir "$home" --shell /bin/sh --comment "$mark" "$login"
  loginctl enable-linger "$login" # its exposures live without a session, and after a reboot
}

make_gate() { gate_program | write_file "$gate" 0755; }

make_keys() { authorized_keys_text | write_file "$home/.ssh/authorized_keys" 0644; } # root's: the login can't change it

# ---------------------------------------------------------------- taking away

take_away() {
  take_login_away
  take_firewall_away
  take_network_away
  take_account_away
}

take_login_away() {
  say "Login $login"
  if id "$login" >/dev/null 2>&1; then
    change "remove user $login with its exposures and keys" remove_login
  fi
  if [ -e "$root$gate" ]; then change "remove $gate" rm -rf "$root$(dirname "$gate")"; fi
}

take_firewall_away() {
  say "Firewall"
  local pos comment cidr entry others=0
  # From the last to the first: positions of those before it stay.
  while read -r pos comment; do
    if [ "$comment" = "$mark" ]; then change "remove node rule $pos" pvesh delete "/nodes/$node/firewall/rules/$pos"; fi
  done < <(ask "/nodes/$node/firewall/rules" | rows pos comment | sort -rn)
  comment=$(ask /cluster/firewall/ipset | rows name comment)
  if [[ $'\n'$comment == *$'\n'"management "* ]]; then
    comment=$(first management "$comment")
    while read -r cidr entry; do
      [ -n "$cidr" ] || continue
      if [ "$entry" = "$mark" ]; then
        change "remove $cidr from the management set" pvesh delete "/cluster/firewall/ipset/management/$cidr"
      else
        others=$((others + 1))
      fi
    done < <(ask /cluster/firewall/ipset/management | rows cidr comment)
    if [ "$comment" = "$mark" ] && [ "$others" = 0 ]; then
      change "remove the management set" pvesh delete /cluster/firewall/ipset/management
    elif [ "$others" != 0 ]; then
      say "  KEPT    the management set: it has $others entries of others"
    fi
  fi
  say "  NOTE    the datacenter's firewall is left as it is"
}

take_network_away() {
  say "Network"
  local have
  if [ -e "$root$nat_unit" ]; then change "remove masquerading" remove_nat; fi
  if [ -e "$root$forward_conf" ]; then change "remove $forward_conf (forwarding stays on until a reboot)" rm -f "$root$forward_conf"; fi
  have=$(ask "/nodes/$node/network" | rows iface cidr)
  if [[ $'\n'$have != *$'\n'"$bridge "* ]]; then return; fi
  if [ "$(first "$bridge" "$have")" != "$net2.0.1/16" ]; then
    say "  KEPT    bridge $bridge: it is not this script's"
  elif grep -qsE "bridge=$bridge(,|\$)" "$root/etc/pve/nodes/$node"/lxc/*.conf "$root/etc/pve/nodes/$node"/qemu-server/*.conf; then
    say "  KEPT    bridge $bridge: guests are connected to it"
  else
    change "remove bridge $bridge" remove_bridge
  fi
}

take_account_away() {
  say "Account"
  local list path role name have
  list=$(pveum_list acl list | rows path roleid ugid)
  while read -r path role _; do
    if line "$path $role $user" "$list" || line "$path $role $user!$token" "$list"; then
      change "take $role on $path from $user and $user!$token" pveum acl delete "$path" --users "$user" --tokens "$user!$token" --roles "$role"
    fi
  done < <(grants)
  have=$(pveum_list user list | rows userid comment)
  if [[ $'\n'$have == *$'\n'"$user "* ]]; then
    if line "$token" "$(pveum_list user token list "$user" | rows tokenid)"; then
      change "remove token $user!$token" pveum user token remove "$user" "$token"
    fi
    if line "$user $mark" "$have"; then
      change "remove user $user" pveum user delete "$user"
    else
      say "  KEPT    user $user: it is not this script's"
    fi
  fi
  have=$(pveum_list pool list | rows poolid comment)
  if line "$pool $mark" "$have"; then
    if [ "$(pool_members)" != 0 ]; then
      say "  KEPT    pool $pool: it has members"
    else
      change "remove pool $pool" pveum pool delete "$pool"
    fi
  elif [[ $'\n'$have == *$'\n'"$pool "* ]]; then
    say "  KEPT    pool $pool: it is not this script's"
  fi
  list=$(pveum_list role list | rows roleid)
  for name in "${roles[@]}"; do
    if line "$prefix$name" "$list"; then change "remove role $prefix$name" pveum role delete "$prefix$name"; fi
  done
}

pool_members() {
  ask "/pools/$pool" | perl -MJSON::PP -e 'local $/; print scalar @{JSON::PP->new->utf8->decode(<STDIN>)->{members} // []}'
}

remove_login() {
  loginctl disable-linger "$login" || true
  loginctl terminate-user "$login" 2>/dev/null || true
  userdel --remove "$login"
}

remove_nat() {
  systemctl disable --now sandbox-nat.service
  rm -f "$root$nat_unit"
  systemctl daemon-reload
}

remove_bridge() {
  pvesh delete "/nodes/$node/network/$bridge"
  pvesh set "/nodes/$node/network"
}

# ---------------------------------------------------------------- what to do with it

print_results() {
  local host fingerprint host_key
  host=$(ip -4 route get 1.1.1.1 2>/dev/null | sed -n 's/.* src \([0-9.]*\).*/\1/p')
  host=${host:-$node}
  fingerprint=$(first "$node" "$nodes")
  host_key=$(cut -d' ' -f1,2 "$root/etc/ssh/ssh_host_ed25519_key.pub" 2>/dev/null || true)
  say
  if [ -n "${secret:-}" ]; then
    say "# The token's value is shown only this once. In the shell that runs Terraform and Packer:"
    say "export SANDBOX_API_TOKEN='$user!$token=$secret'"
    say "export PKR_VAR_token='$secret'"
    say
  fi
  cat <<TEXT
# provider block ------------------------------------------------------------
provider "sandbox" {
  endpoint    = "https://$host:8006"
  fingerprint = "$fingerprint"
  owner       = "$owner"

  nodes       = ["$node"]
  pool_id     = "$pool"
  template_id = $template
  storage     = "$storage"
  bridge      = "$bridge"

  vmid_range = { first = $first_vmid, last = $((first_vmid + sandboxes - 1)) }
  address_range = {
    cidr    = "$network"
    first   = "$net2.1.0"
    gateway = "$net2.0.1"
  }
  management_cidrs = ["$net2.0.1/32"]

  guest_ssh = {
    private_key_file = "~/.ssh/sandbox"
    proxy_jump = {
      host     = "$host"
      username = "$([ -n "$jump_key" ] && echo "$login" || echo root)"
$(if [ -n "$host_key" ]; then echo "      host_key = \"$host_key\""; fi)
    }
  }
}
# sandbox.auto.pkrvars.hcl --------------------------------------------------
proxmox_url  = "https://$host:8006/api2/json"
username     = "$user!$token"
node         = "$node"
pool         = "$pool"
vm_id        = $template
storage      = "$storage"
file_storage = "$file_storage"
bridge       = "$bridge"
# ---------------------------------------------------------------------------
TEXT
}

# ---------------------------------------------------------------- begin

main() {
  local print_gate=no
  while [ $# -gt 0 ]; do
    case $1 in
      --apply) apply=yes ;;
      --undo) undo=yes ;;
      --enable-firewall) enable_firewall=yes ;;
      --print-gate) print_gate=yes ;;
      -h | --help) usage; exit 0 ;;
      --user | --token | --pool | --role-prefix | --node | --storage | --backup-storage | --file-storage | --template | --bridge | --network | \
        --first-vmid | --sandboxes | --management | --node-key | --jump-key | --owner)
        [ $# -ge 2 ] || fail "$1 needs a value"
        case $1 in
          --user) user=$2 ;; --token) token=$2 ;; --pool) pool=$2 ;; --role-prefix) prefix=$2 ;; --node) node=$2 ;;
          --storage) storage=$2 ;; --backup-storage) backup_storage=$2 ;; --file-storage) file_storage=$2 ;; --template) template=$2 ;;
          --bridge) bridge=$2 ;; --network) network=$2 ;; --first-vmid) first_vmid=$2 ;; --sandboxes) sandboxes=$2 ;;
          --management) management+=("$2") ;; --node-key) node_key=$(key_of "$2") ;; --jump-key) jump_key=$(key_of "$2") ;; --owner) owner=$2 ;;
        esac
        shift
        ;;
      *) usage >&2; fail "unknown option $1" ;;
    esac
    shift
  done
  [[ $network =~ ^([0-9]{1,3}\.[0-9]{1,3})\.0\.0/16$ ]] || fail "--network must be of the form A.B.0.0/16"
  net2=${BASH_REMATCH[1]}
  if [ "$print_gate" = yes ]; then gate_program; exit 0; fi
  [[ $sandboxes =~ ^[1-9][0-9]{0,3}$ && $sandboxes -le 4096 ]] || fail "--sandboxes must be 1 to 4096"
  [[ $first_vmid =~ ^[1-9][0-9]{2,8}$ && $template =~ ^[1-9][0-9]{2,8}$ ]] || fail "ids have 3 to 9 digits"
  [[ $bridge =~ ^[a-z][a-z0-9]{1,9}$ && $pool =~ ^[A-Za-z0-9_-]+$ && $prefix =~ ^[A-Za-z][A-Za-z0-9_-]*$ && $user =~ ^[^[:space:]:/!]+@[a-z][a-z0-9.-]+$ && $token =~ ^[A-Za-z][A-Za-z0-9._-]+$ ]] \
    || fail "the name of a bridge, pool, role, user or token can't be right"

  local tool release cidr
  for tool in pveum pvesh pveversion ip perl; do
    command -v "$tool" >/dev/null || fail "$tool is missing: this is for a Proxmox VE node"
  done
  [ "$(id -u)" = 0 ] || fail "this is for root on the node"
  release=$(pveversion | sed -n 's|^pve-manager/\([0-9]*\)\..*|\1|p')
  [ "${release:-0}" -ge 8 ] || fail "Proxmox VE 8 or 9 is needed"
  node=${node:-$(hostname -s)}
  owner=${owner:-$node}
  nodes=$(ask /nodes | rows node ssl_fingerprint)
  [[ $'\n'$nodes == *$'\n'"$node "* ]] || fail "there is no node $node"
  for cidr in "${management[@]}"; do
    case $cidr in "$net2".*) fail "$cidr is a sandbox's address: it must not be in the management set" ;; esac
  done
  storage=${storage:-$(storage_for rootdir)}
  backup_storage=${backup_storage:-$(storage_for backup)}
  file_storage=${file_storage:-$(storage_for vztmpl)}
  [ -n "$storage" ] || fail "no storage takes root disks (content type rootdir): name one with --storage"
  backup_storage=${backup_storage:-$storage}
  file_storage=${file_storage:-$storage}
  if [ ${#management[@]} = 0 ]; then
    case ${SSH_CONNECTION:-} in
      '') ;;
      *:*\ *) management=("${SSH_CONNECTION%% *}/128") ;;
      *) management=("${SSH_CONNECTION%% *}/32") ;;
    esac
  fi

  if [ "$undo" = yes ]; then
    take_away
  else
    check_network
    make_roles
    make_account
    make_rights
    make_bridge
    make_nat
    make_firewall
    make_login
  fi
  if [ "$apply" = no ]; then
    say
    say "Nothing was changed. Run it again with --apply to do this."
  elif [ "$undo" = no ]; then
    print_results
  fi
}

main "$@"
