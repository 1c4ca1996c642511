// Package pki makes the keys and certificates of a lab. They live as long as the lab's folder.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is longer than any lab is kept.
const validity = 5 * 365 * 24 * time.Hour

// Pair is a certificate and its key, both as PEM.
type Pair struct{ Certificate, Key []byte }

// Save writes NAME.crt and NAME.key into a folder.
func (p Pair) Save(folder, name string) error {
	if err := os.WriteFile(filepath.Join(folder, name+".crt"), p.Certificate, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".key"), p.Key, 0o600)
}

// Authority signs certificates.
type Authority struct {
	Pair
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes a certificate authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name})
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(firstBlock(pair.Certificate))
	if err != nil {
		return nil, err
	}
	return &Authority{Pair: pair, certificate: certificate, key: key}, nil
}

// Request describes a certificate. The certificate is for clients and servers alike.
type Request struct {
	User   string
	Groups []string
	Names  []string
	IPs    []net.IP
}

// Issue makes a key and signs a certificate for it.
func (a *Authority) Issue(request Request) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	template, err := newTemplate(pkix.Name{CommonName: request.User, Organization: request.Groups})
	if err != nil {
		return Pair{}, err
	}
	template.DNSNames, template.IPAddresses = request.Names, request.IPs
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	return sign(template, a.certificate, key, a.key)
}

// NewKey makes a key pair that signs service account tokens: the "certificate" of the pair is the public key.
func NewKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return Pair{}, err
	}
	private, err := encodeKey(key)
	return Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), Key: private}, err
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	// An hour back, for a node whose clock is behind.
	return &x509.Certificate{Subject: subject, SerialNumber: serial, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity)}, nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Pair, error) {
	content, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, fmt.Errorf("sign a certificate for %s: %w", template.Subject, err)
	}
	private, err := encodeKey(key)
	return Pair{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: content}), Key: private}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	content, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: content}), err
}

func firstBlock(content []byte) []byte {
	block, _ := pem.Decode(content)
	return block.Bytes
}

// LoadAuthority reads what Save has written.
func LoadAuthority(folder, name string) (*Authority, error) {
	certificate, err := os.ReadFile(filepath.Join(folder, name+".crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(folder, name+".key"))
	if err != nil {
		return nil, err
	}
	loaded, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	signer, ok := loaded.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s.key is not an ECDSA key", name)
	}
	return &Authority{Pair: Pair{Certificate: certificate, Key: key}, certificate: loaded.Leaf, key: signer}, nil
}
