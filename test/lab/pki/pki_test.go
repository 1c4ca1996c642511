package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

// TestIssue verifies a certificate as a server's and as a client's, and checks that another authority does not vouch for it.
func TestIssue(t *testing.T) {
	authority, err := NewAuthority("lab")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Issue(Request{User: "system:node:n1", Groups: []string{"system:nodes"}, Names: []string{"n1"},
		IPs: []net.IP{net.IPv4(127, 0, 0, 2)}})
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	trusts := func(authority *Authority, name string, usage x509.ExtKeyUsage) error {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority.Certificate)
		_, err := loaded.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	for _, name := range []string{"n1", "127.0.0.2"} {
		if err := trusts(authority, name, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("as server %s: %v", name, err)
		}
	}
	if err := trusts(authority, "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("as client: %v", err)
	}
	if user := loaded.Leaf.Subject; user.CommonName != "system:node:n1" || user.Organization[0] != "system:nodes" {
		t.Errorf("issued to %s", user)
	}
	if time.Now().Before(loaded.Leaf.NotBefore) {
		t.Error("not yet valid")
	}
	if other, _ := NewAuthority("other"); trusts(other, "n1", x509.ExtKeyUsageServerAuth) == nil {
		t.Error("another authority vouches for it")
	}
}
