#!/bin/sh
# Stands for your tests: says what it tests, and where.
set -e
echo "testing $1 on $(hostname)"
