#!/bin/sh
# sbx-run: runs an agent in this guest, apart from the connection that asked for it.
#
#   sbx-run list                   the runs that this guest knows
#   sbx-run status ID              how a run stands
#   sbx-run tail ID                its output, until it ends
#   sbx-run stop ID                ends it: TERM, then KILL, with everything that it started
#   sbx-run collect ID             marks its result as taken
#
# A run is the folder STATE/ID (on disk: what was asked for, the output, the result) and VOLATILE/ID (in memory: the
# supervisor's process number, the secrets). ID is the run's key, a dot and the attempt's number. Whoever wrote this
# file uses further verbs, see the protocol in the package beside it.
set -u
umask 077

me=$(id -un)
if [ "$(id -u)" = 0 ]; then
  state=/var/lib/sandbox/runs volatile=/run/sandbox/runs program=/usr/local/bin/sbx-run
else
  state=$HOME/.local/state/sandbox/runs program=$HOME/.local/bin/sbx-run
  volatile=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}
  [ -w "$volatile" ] || volatile=$HOME/.local/state # on disk: then there are no secrets
  volatile=$volatile/sandbox/volatile
fi
segment=4194304 # bytes of a file of the log; the first and the last three are kept

fail() { # CODE MESSAGE
  printf 'error=%s\nmessage=%s\n\n' "$1" "$2"
  exit 3
}

# now_cs: hundredths of a second since the guest's boot, which no change of the date touches.
now_cs() {
  read -r up _ </proc/uptime
  echo $((${up%.*} * 100 + 1${up#*.} - 100))
}

nap() { sleep "${1-0.1}" 2>/dev/null || sleep 1; }

# look_at PID sets st_state, st_session and st_start of a process.
look_at() {
  { read -r st_line <"/proc/$1/stat"; } 2>/dev/null || return 1
  set -- ${st_line##*') '}
  st_state=$1 st_session=$4
  shift 15
  st_start=$5
}

# lives PIDFILE: whether the very process that is named in the file is there.
lives() {
  [ -r "$1" ] || return 1
  read -r l_pid l_start <"$1" || return 1
  look_at "$l_pid" && [ "$st_state" != Z ] && [ "$st_start" = "$l_start" ]
}

# claimed ID: whether the process that prepares a run is still at it.
claimed() {
  c_owner=$(readlink "$volatile/$1.claim" 2>/dev/null) || return 1
  look_at "${c_owner%:*}" && [ "$st_state" != Z ] && [ "$st_start" = "${c_owner#*:}" ]
}

# claim ID takes the preparation of a run, which only one process can.
claim() {
  claimed "$1" && return 1
  rm -f "$volatile/$1.claim" # of one that died
  look_at $$ && ln -s "$$:$st_start" "$volatile/$1.claim" 2>/dev/null
}

# on_memory PATH: whether the folder is on a file system that has no disk.
on_memory() {
  real=$(cd "$1" 2>/dev/null && pwd -P) || return 1
  best='' kind=''
  while read -r _ point type _; do
    case $real/ in
    "${point%/}"/*) [ "${#point}" -ge "${#best}" ] && best=$point kind=$type ;;
    esac
  done </proc/mounts
  [ "$kind" = tmpfs ] || [ "$kind" = ramfs ]
}

# ended sets what the end of the run in d and v says; false where it has none.
ended() {
  if [ -r "$v/end" ]; then
    . "$v/end"
  elif [ -r "$d/end" ]; then
    . "$d/end"
  else
    return 1
  fi
}

# status_of ID sets status: absent, starting, running, lost, or what its end says.
status_of() {
  d=$state/$1 v=$volatile/$1
  status='' code='' ended='' duration='' # these are what an end sets
  if [ ! -d "$d" ]; then
    status=absent
  elif ended; then
    return 0
  elif lives "$v/pid"; then
    status=running
  elif claimed "$1"; then
    status=starting
  elif ! ended; then # once more: it may have ended since
    status=lost
    rm -rf "$v" # its secrets too
  fi
}

# newest KEY sets attempt to the highest number of a key, 0 for none.
newest() {
  attempt=0
  for n_dir in "$state/$1".*; do
    n_number=${n_dir##*.}
    case $n_number in '' | *[!0-9]*) continue ;; esac
    [ "$n_number" -gt "$attempt" ] && attempt=$n_number
  done
}

# adoptable KEY sets id to the run of the key whose result nobody has taken yet; else to nothing.
adoptable() {
  newest "$1"
  id=''
  [ "$attempt" -gt 0 ] || return 0
  [ -e "$state/$1.$attempt/collected" ] && return 0
  status_of "$1.$attempt"
  case $status in lost | absent) ;; *) id=$1.$attempt ;; esac
}

# install_self puts this script where later calls find it; its text came with the call, in sbx_text.
install_self() {
  [ -r "$program" ] && [ "$(cat "$program")" = "$sbx_text" ] && return 0
  (umask 022 && mkdir -p "${program%/*}") && printf '%s\n' "$sbx_text" >"$program.$$" && chmod 755 "$program.$$" && mv -f "$program.$$" "$program"
}

# look KEY USER BINARY VERSION: what is here, and whether a run of the key is to be adopted.
look() {
  missing=''
  for l_need in mkdir mv cp rm ln readlink chmod chown id head tail wc date sleep env cat grep sed tee setsid; do
    command -v "$l_need" >/dev/null 2>&1 || missing="$missing $l_need"
  done
  [ "$2" = "$me" ] || command -v setpriv >/dev/null 2>&1 || command -v su >/dev/null 2>&1 || missing="$missing su"
  [ -r /proc/self/stat ] && [ -r /proc/uptime ] || missing="$missing /proc"
  [ -z "$missing" ] || fail needs "${missing# }"
  install_self 2>/dev/null || fail space "$program can't be written"
  adoptable "$1"
  known "$2" || fail user "$2"
  [ "$2" = "$me" ] || [ "$me" = root ] || fail other "$me"
  memory=0
  (umask 066 && mkdir -p "$volatile") 2>/dev/null && on_memory "$volatile" && memory=1
  found='' version=''
  if [ -n "$3" ]; then
    SBX_BINARY=$3
    export SBX_BINARY
    found=$(as_user "$2" "$paths"'; command -v "$SBX_BINARY"')
    [ -z "$found" ] || [ -z "$4" ] || version=$(as_user "$2" "$paths; cd; $4 </dev/null" | head -n 1)
  fi
  printf 'now=%s\nid=%s\nattempt=%s\nmemory=%s\nbinary=%s\nversion=%s\n\n' "$(date +%s)" "$id" "$attempt" "$memory" "$found" "$version"
  [ -z "$3" ] || [ -n "$found" ] || head -c 65536 /etc/sandbox/template.json 2>/dev/null
  return 0
}

# paths is what a run has for PATH, beside what its environment says.
paths='PATH=$HOME/.local/bin:$HOME/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin; export PATH'

# known USER sets gid and home of a user, and how: the way to become that user. Some small templates have a su that
# never works, having no PAM configuration; setpriv needs none.
known() {
  u_line=$(grep "^$1:" /etc/passwd || getent passwd "$1" 2>/dev/null) || return 1
  u_line=${u_line%:*}
  home=${u_line##*:}
  gid=$(id -g "$1")
  if [ "$1" = "$me" ]; then
    how=stay
  elif setpriv --reuid="$1" --regid="$gid" --init-groups true 2>/dev/null; then
    how=setpriv
  else
    how=su
  fi
}

# as_user USER CODE runs code of ours, with SBX_BINARY in its environment.
as_user() {
  case $how in
  stay) HOME=$home sh -c "$2" ;;
  setpriv) HOME=$home USER=$1 LOGNAME=$1 setpriv --reuid="$1" --regid="$gid" --init-groups sh -c "$2" ;;
  su) su -s /bin/sh "$1" -c "$2" ;;
  esac 2>/dev/null
}

# start KEY USER LIMIT GRACE REPAIRS LAUNCH TEST PROMPT SECRETS REDACTION
# starts a run, or adopts one. All arguments came over standard input and are in no command line.
start() {
  install_self 2>/dev/null || fail space "$program can't be written" # a stage may have rolled the guest back
  key=$1 user=$2
  adoptable "$key"
  if [ -n "$id" ]; then
    printf 'now=%s\nid=%s\nadopted=1\n\n' "$(date +%s)" "$id"
    return 0
  fi
  id=$key.$((attempt + 1))
  d=$state/$id v=$volatile/$id
  (umask 066 && mkdir -p "$state" "$volatile") 2>/dev/null || fail space "$state"
  if [ -n "$9" ] && ! on_memory "$volatile"; then
    fail memory "$volatile"
  fi
  if ! claim "$id" || ! mkdir "$d" 2>/dev/null; then
    [ -d "$d" ] || claimed "$id" || fail space "$d"
    printf 'now=%s\nid=%s\nadopted=1\n\n' "$(date +%s)" "$id" # another process was faster
    return 0
  fi
  prepare "$@" 2>/dev/null || {
    rm -rf "$d" "$v" "$v.claim"
    fail space "$d"
  }
  prune
  detach
  tries=0
  until [ -e "$v/pid" ] || [ -e "$d/end" ] || [ -e "$v/end" ]; do
    tries=$((tries + 1))
    if [ "$tries" -gt 500 ]; then
      said=$(head -c 500 "$d/supervisor.log" 2>/dev/null)
      rm -rf "$d" "$v" "$v.claim"
      fail supervisor "$said"
    fi
    nap 0.02
  done
  rm -f "$v.claim"
  printf 'now=%s\nid=%s\nadopted=0\n\n' "$(date +%s)" "$id"
}

# prepare writes what the supervisor and the run's user need; false where anything couldn't be written.
prepare() {
  p_user=$2 p_secrets=$9
  mkdir -p "$v" && chmod 711 "$d" "$v" &&
    printf "user='%s'\nlimit=%s\ngrace=%s\nrepairs=%s\n" "$2" "$3" "$4" "$5" >"$d/spec" &&
    mkdir "$d/in" && printf '%s\n' "$6" >"$d/in/agent" && printf '%s' "$8" >"$d/in/prompt.1" || return 1
  if [ -n "$7" ]; then
    printf '%s\n' "$7" >"$d/in/test" || return 1
  fi
  shift 9
  if [ -n "$p_secrets" ]; then
    printf '%s\n' "$p_secrets" >"$v/secrets" && printf '%s\n' "$1" >"$v/redact" || return 1
  fi
  if [ "$p_user" != "$me" ]; then
    chown -R "$p_user" "$d/in" || return 1
    [ -z "$p_secrets" ] || chown "$p_user" "$v/secrets" || return 1
  fi
}

# prune keeps the disk from filling with old results that were taken.
prune() {
  p_kept=0
  for p_dir in $(ls -1dt "$state"/*.* 2>/dev/null); do
    [ -e "$p_dir/collected" ] || continue
    p_kept=$((p_kept + 1))
    [ "$p_kept" -le 20 ] || rm -rf "$p_dir"
  done
}

# detach starts the supervisor: under systemd in a unit of its own, else in a session of its own.
detach() {
  if [ "$me" = root ] && [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then
    : >"$v/unit"
    systemd-run --quiet --collect --no-ask-password --unit="sbx-run-$id" --property=TimeoutStopSec=15 /bin/sh "$program" supervise "$id" </dev/null >/dev/null 2>"$d/supervisor.log" && return 0
    rm -f "$v/unit"
  fi
  setsid sh "$program" supervise "$id" </dev/null >/dev/null 2>"$d/supervisor.log" &
}

# members prints the processes of a run: those that carry its mark in their environment, those in the same sessions, and
# under systemd those in its unit; never those of the session that asks, nor what has ended already.
members() {
  look_at $$
  m_own=$st_session
  m_sessions=' '
  [ -r "$v/sessions" ] && m_sessions=" $(cat "$v/sessions") "
  m_pids=' '
  for m_file in $(grep -l "SBX_RUN=:$id:" /proc/[0-9]*/environ 2>/dev/null); do
    m_pid=${m_file#/proc/}
    m_pid=${m_pid%/environ}
    look_at "$m_pid" || continue
    [ "$st_session" != "$m_own" ] && [ "$st_state" != Z ] || continue
    m_pids="$m_pids$m_pid "
    case $m_sessions in *" $st_session "*) ;; *) m_sessions="$m_sessions$st_session " ;; esac
  done
  if [ -e "$v/unit" ]; then
    while IFS=: read -r m_zero _ m_group; do
      [ "$m_zero" = 0 ] || continue
      for m_pid in $(cat "/sys/fs/cgroup$m_group/cgroup.procs" 2>/dev/null); do
        look_at "$m_pid" && [ "$st_session" != "$m_own" ] && [ "$st_state" != Z ] || continue
        case $m_pids in *" $m_pid "*) ;; *) m_pids="$m_pids$m_pid " ;; esac
      done
    done <"/proc/$$/cgroup"
  fi
  if [ "$m_sessions" != ' ' ]; then
    printf '%s' "$m_sessions" >"$v/sessions" 2>/dev/null
    for m_file in /proc/[0-9]*/stat; do
      m_pid=${m_file#/proc/}
      m_pid=${m_pid%/stat}
      case $m_pids in *" $m_pid "*) continue ;; esac
      look_at "$m_pid" && [ "$st_session" != "$m_own" ] && [ "$st_state" != Z ] || continue
      case $m_sessions in *" $st_session "*) m_pids="$m_pids$m_pid " ;; esac
    done
  fi
  echo "$m_pids"
}

# sweep ends all processes of a run: TERM, and after the grace KILL.
sweep() {
  s_pids=$(members)
  [ "$s_pids" != ' ' ] || return 0
  kill -s TERM $s_pids 2>/dev/null
  s_until=$(($(now_cs) + grace * 100))
  while :; do
    s_pids=$(members)
    [ "$s_pids" != ' ' ] || return 0
    [ "$(now_cs)" -lt "$s_until" ] || break
    nap
  done
  for _ in 1 2 3 4 5 6 7 8 9 10; do # more than once: it may be forking
    kill -s KILL $s_pids 2>/dev/null
    nap
    s_pids=$(members)
    [ "$s_pids" != ' ' ] || return 0
  done
}

# execute FILE ATTEMPT runs one step as the run's user, in a session and with an environment of its own. All that it says
# is standard output: on standard error a shell reports children that were killed, which isn't the run's output.
execute() {
  set -- "$d/in/$1" "$2" env -i SBX_RUN=":$id:" SBX_IN="$d/in" SBX_SECRETS="$secrets" PATH="$PATH" HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/sh
  e_file=$1 e_number=$2
  shift 2
  case $how in
  stay) (exec setsid "$@" sh "$e_file" "$e_number" 2>&1) ;;
  setpriv) (exec setsid "$@" setpriv --reuid="$user" --regid="$gid" --init-groups sh "$e_file" "$e_number" 2>&1) ;;
  su) (exec setsid "$@" su -s /bin/sh "$user" -c "exec sh '$e_file' $e_number" 2>&1) ;;
  esac
}

step() { # FILE ATTEMPT; sets code
  s_start=$(now_cs)
  execute "$1" "$2"
  code=$?
  sweep # what it left running ends with it
  printf '%s %s %s %s\n' "$1" "$2" "$code" "$(($(now_cs) - s_start))" >>"$v/steps"
  echo "$code" >"$v/code"
}

# attempts runs the agent, then the tests, then the agent again with what the tests said.
attempts() {
  number=1
  while :; do
    step agent "$number"
    [ "$code" = 0 ] && [ -r "$d/in/test" ] && [ ! -e "$v/limit" ] && [ ! -e "$v/stop" ] || return 0
    { step test "$number" 2>/dev/null | tee /dev/stderr | tail -c 16384 >"$v/said"; } 2>&1
    code=$(cat "$v/code")
    [ "$code" != 0 ] && [ "$number" -le "$repairs" ] && [ ! -e "$v/limit" ] && [ ! -e "$v/stop" ] || return 0
    number=$((number + 1))
    { cat "$d/in/prompt.1" && printf '\n\nThe tests failed after your last attempt, with exit code %s. Repair what is wrong. The end of their output:\n\n' "$code" && cat "$v/said"; } >"$d/in/prompt.$number" &&
      { [ "$user" = "$me" ] || chown "$user" "$d/in/prompt.$number"; } || return 0
  done
}

# redacted passes output on without the secrets that are known.
redacted() {
  if [ ! -r "$v/redact" ]; then
    cat
  elif echo | sed -u -f "$v/redact" >/dev/null 2>&1; then
    sed -u -f "$v/redact"
  else
    sed -f "$v/redact"
  fi
}

# keep writes the log, its beginning and its end. It reads on when the disk is full: the run goes on without a log.
keep() {
  k_number=0
  while head -c "$segment" >>"$d/log.$k_number" 2>/dev/null; do
    [ "$(wc -c <"$d/log.$k_number")" -ge "$segment" ] || return 0
    k_number=$((k_number + 1))
    [ "$k_number" -gt 3 ] && rm -f "$d/log.$((k_number - 3))"
  done
  : >"$v/full"
  cat >/dev/null
}

# watch ends the run when its time is up, or when it is told to.
watch() {
  sleep "$limit" &
  echo $! >"$v/sleeper"
  [ ! -e "$v/over" ] || kill $! 2>/dev/null # the run has ended before anybody could know whom to wake
  if wait $!; then
    : >"$v/limit"
  elif [ ! -e "$v/stop" ]; then
    return 0
  fi
  rm -f "$v/sleeper"
  until [ -e "$v/over" ]; do # a step may be starting this very moment
    sweep
    nap
  done
}

# supervise ID is the process that a run belongs to.
supervise() {
  id=$1 d=$state/$1 v=$volatile/$1
  . "$d/spec"
  known "$user"
  secrets=''
  [ -r "$v/secrets" ] && secrets=$v/secrets
  began=$(now_cs)
  date +%s >"$v/started"
  cp "$v/started" "$d/started" 2>/dev/null
  look_at $$
  echo "$$ $st_start" >"$v/pid.new" && mv -f "$v/pid.new" "$v/pid"
  watch &
  watcher=$!
  attempts 2>/dev/null </dev/null | redacted | keep
  : >"$v/over"
  sleeper=$(cat "$v/sleeper" 2>/dev/null)
  [ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null
  wait "$watcher"
  sweep
  finish
}

# finish writes the result: to disk, and to memory where the disk is full.
finish() {
  code=$(cat "$v/code" 2>/dev/null)
  if [ -e "$v/limit" ]; then
    status=timed_out
  elif [ -e "$v/stop" ]; then
    status=stopped
  elif [ "$code" = 0 ]; then
    status=succeeded
  else
    status=failed
  fi
  rm -f "$v/secrets" "$v/redact" "$v/said"
  printf 'status=%s\ncode=%s\nended=%s\nduration=%s\n' "$status" "$code" "$(date +%s)" "$(($(now_cs) - began))" >"$v/end.new"
  { cp "$v/steps" "$d/steps" && cp "$v/end.new" "$d/end.new" && mv -f "$d/end.new" "$d/end"; } 2>/dev/null || mv -f "$v/end.new" "$v/end"
}

# log_size sets total to the bytes that the log had so far, and dropped to 1 where a part of it is gone.
log_size() {
  total=0 dropped=0 last=-1
  for l_file in "$d"/log.*; do
    l_number=${l_file##*.}
    case $l_number in *[!0-9]*) continue ;; esac
    [ "$l_number" -gt "$last" ] && last=$l_number
  done
  [ "$last" -ge 0 ] || return 0
  total=$((last * segment + $(wc -c <"$d/log.$last")))
  [ "$last" -le 3 ] && [ ! -e "$v/full" ] || dropped=1
}

# log_from OFFSET MOST prints a part of the log. A part that is gone is passed over, see place.
log_from() {
  f_offset=$1 f_most=$2
  while [ "$f_most" -gt 0 ] && [ "$f_offset" -lt "$total" ]; do
    f_number=$((f_offset / segment)) f_inner=$((f_offset % segment))
    f_count=$((segment - f_inner))
    [ "$f_count" -le "$f_most" ] || f_count=$f_most
    [ "$f_count" -le $((total - f_offset)) ] || f_count=$((total - f_offset))
    tail -c +$((f_inner + 1)) "$d/log.$f_number" 2>/dev/null | head -c "$f_count"
    f_offset=$((f_offset + f_count)) f_most=$((f_most - f_count))
  done
}

# place OFFSET sets from to where reading can go on; a negative offset counts from the end.
place() {
  from=$1
  [ "$from" -ge 0 ] || from=$((total + from))
  [ "$from" -ge 0 ] || from=0
  while [ "$from" -lt "$total" ] && [ ! -e "$d/log.$((from / segment))" ]; do
    from=$(((from / segment + 1) * segment))
  done
}

# poll ID OFFSET MOST prints how a run stands, and what came out of it since.
poll() {
  id=$1
  status_of "$id"
  if [ "$status" = absent ]; then
    printf 'now=%s\nstatus=absent\n\n' "$(date +%s)"
    return 0
  fi
  started=$(cat "$d/started" 2>/dev/null || cat "$v/started" 2>/dev/null)
  collected=0
  [ -e "$d/collected" ] && collected=1
  log_size
  place "$2"
  printf 'now=%s\nstatus=%s\ncode=%s\nstarted=%s\nended=%s\nduration=%s\ntotal=%s\ndropped=%s\nfrom=%s\ncollected=%s\n' \
    "$(date +%s)" "$status" "$code" "$started" "$ended" "$duration" "$total" "$dropped" "$from" "$collected"
  sed 's/^/step=/' "$v/steps" 2>/dev/null || sed 's/^/step=/' "$d/steps" 2>/dev/null
  echo
  log_from "$from" "$3"
}

# stop ID ends a run and waits for its end.
stop() {
  id=$1
  status_of "$id"
  case $status in running | starting) ;; *) return 0 ;; esac
  . "$d/spec"
  : >"$v/stop"
  tries=0
  while lives "$v/pid" || claimed "$id"; do
    sleeper=$(cat "$v/sleeper" 2>/dev/null)
    [ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null
    tries=$((tries + 1))
    [ "$tries" -le $(((grace + 10) * 10)) ] || break
    nap
  done
  sweep
  rm -f "$v/secrets" "$v/redact"
}

# named ID refuses what is no run of this guest.
named() {
  case ${1-} in
  '' | *[!0-9a-f.]* | .* | *..*) echo "sbx-run: which run? See: sbx-run list" >&2 && exit 2 ;;
  esac
  [ -d "$state/$1" ] || { echo "sbx-run: there is no run $1" >&2 && exit 1; }
}

follow() {
  id=$1 f_at=0
  while :; do
    status_of "$id"
    log_size
    place "$f_at"
    log_from "$from" "$((total - from))"
    f_at=$total
    case $status in running | starting) sleep 1 ;; *) return 0 ;; esac
  done
}

verb=${1-}
[ $# -eq 0 ] || shift
case $verb in
look) look "$@" ;;
start) start "$@" ;;
supervise) supervise "$@" ;;
poll) poll "$@" ;;
under-way)
  echo
  for u_file in "$volatile"/*/pid; do
    if lives "$u_file"; then
      u_file=${u_file%/pid}
      echo "${u_file##*/}"
    fi
  done
  ;;
discard) # its result is of no interest any more
  if [ -d "$state/$1" ]; then
    : >"$state/$1/collected"
    stop "$1"
  fi
  ;;
collect)
  named "${1-}"
  : >"$state/$1/collected"
  rm -rf "$volatile/$1/secrets" "$volatile/$1/redact"
  ;;
stop)
  named "${1-}"
  stop "$1"
  ;;
status)
  named "${1-}"
  poll "$1" 0 0
  ;;
tail)
  named "${1-}"
  follow "$1"
  ;;
list)
  for l_dir in "$state"/*.*; do
    [ -d "$l_dir" ] || continue
    status_of "${l_dir##*/}"
    echo "${l_dir##*/} $status"
  done
  ;;
*)
  echo "usage: sbx-run list | status ID | tail ID | stop ID | collect ID" >&2
  exit 2
  ;;
esac
