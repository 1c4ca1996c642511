// Package zfs runs the zpool, zfs and zdb programs of a node and reads what they print.
//
// It knows no Kubernetes. Nothing goes through a shell, names that could be taken for an option are refused
// before a program starts, and no command carries -f: what ZFS refuses without force stays refused.
package zfs
