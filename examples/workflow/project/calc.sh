# shellcheck shell=sh
# Whole numbers, for the shell. Two of the three are wrong.

add() { echo $(($1 - $2)); }

sub() { echo $(($2 - $1)); }

mul() { echo $(($1 * $2)); }
