# finish.sh ROOT STATE…: the environment that keeps agents from updating themselves and calling home, from standard input (NAME=value lines),
# for logins, services and SSH; and no state of an agent in a home that clones would inherit.
set -eu
root=$1
shift
environment=$(cat)
mkdir -p "$root"/etc/environment.d "$root"/etc/profile.d
printf '%s\n' "$environment" >"$root"/etc/environment.d/60-sandbox-agents.conf
printf '%s\n' "$environment" | sed -n "s/^\([A-Z][A-Z0-9_]*\)=\(.*\)$/export \1='\2'/p" >"$root"/etc/profile.d/sandbox-agents.sh
# pam_env reads this one at each login over SSH; only our lines are ours.
touch "$root"/etc/environment
sed -i '/# sandbox-agents: begin/,/# sandbox-agents: end/d' "$root"/etc/environment
if [ -n "$environment" ]; then printf '# sandbox-agents: begin\n%s\n# sandbox-agents: end\n' "$environment" >>"$root"/etc/environment; fi
chmod 0644 "$root"/etc/environment.d/60-sandbox-agents.conf "$root"/etc/profile.d/sandbox-agents.sh "$root"/etc/environment
for path; do
  for home in "$root"/root "$root"/home/*; do
    rest=${path#\~/}
    if [ -d "$home" ]; then rm -rf "$home/${rest:?}"; fi
  done
done
rm -rf "$root"/root/.npm "$root"/root/.cache/uv "$root"/root/.cache/pip
