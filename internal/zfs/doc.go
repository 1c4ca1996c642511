// Package zfs runs the zpool, zfs and zdb programs of a node and parses their output.
//
// It does not depend on Kubernetes. Nothing goes through a shell, a name that could be taken for an option is refused before a program
// starts, and no command has -f: if ZFS refuses something without force, it stays refused.
package zfs
