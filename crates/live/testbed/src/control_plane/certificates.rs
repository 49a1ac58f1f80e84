//! A certificate authority of the cluster's own, and what it signs.

use super::{ControlPlaneError, io};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Signs for one cluster; its key is never written down.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    /// A new authority; its certificate goes to `ca.crt` in the folder.
    pub fn new(folder: &Path) -> Result<Authority, ControlPlaneError> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "deepshare-testbed");
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        write(&folder.join("ca.crt"), &certificate.pem())?;
        Ok(Authority { issuer: Issuer::new(params, key), folder: folder.to_owned() })
    }

    /// A certificate for servers on loopback and for clients; `NAME.crt` and `NAME.key`. What a
    /// client's certificate says is who it is: `user`, of `group`.
    pub fn sign(&self, name: &str, user: &str, group: &str) -> Result<(), ControlPlaneError> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned).to_vec())?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        params.subject_alt_names.push(rcgen::SanType::IpAddress(loopback));
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        write(&self.folder.join(format!("{name}.crt")), &certificate.pem())?;
        write(&self.folder.join(format!("{name}.key")), &key.serialize_pem())
    }
}

/// A pair of keys for tokens of service accounts: `NAME.key` and `NAME.pub`.
pub fn key_pair(folder: &Path, name: &str) -> Result<(), ControlPlaneError> {
    let key = KeyPair::generate()?;
    write(&folder.join(format!("{name}.key")), &key.serialize_pem())?;
    write(&folder.join(format!("{name}.pub")), &key.public_key_pem())
}

/// Writes a file that only its owner may read.
pub fn write(path: &Path, text: &str) -> Result<(), ControlPlaneError> {
    let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(io("write", path))
}
