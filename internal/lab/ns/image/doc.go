// Package image builds the base images of the ns engine from Debian's packages, and keeps them in a cache by the hash of
// their recipe. Nothing is installed on the machine: packages are fetched with apt-get and unpacked.
package image
