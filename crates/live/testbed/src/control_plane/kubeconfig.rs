//! Kubeconfig files, written as JSON, which every reader of them takes as YAML.

use super::{ControlPlaneError, certificates};
use serde_json::json;
use std::path::Path;

/// How a user shows who it is.
pub enum Login {
    /// With the certificate `NAME.crt` and its key, beside the kubeconfig.
    Certificate(String),
    /// With a bearer token.
    Token(String),
}

/// Writes a kubeconfig for one user of one cluster.
pub fn write(
    path: &Path,
    server: &str,
    ca: &Path,
    user: &str,
    login: &Login,
) -> Result<(), ControlPlaneError> {
    let beside = path.parent().unwrap_or(Path::new("."));
    let login = match login {
        Login::Certificate(name) => json!({
            "client-certificate": beside.join(format!("{name}.crt")),
            "client-key": beside.join(format!("{name}.key")),
        }),
        Login::Token(token) => json!({ "token": token }),
    };
    let cluster = json!({ "server": server, "certificate-authority": ca });
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "testbed", "cluster": cluster }],
        "users": [{ "name": user, "user": login }],
        "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": user } }],
        "current-context": "testbed",
    });
    certificates::write(path, &format!("{config:#}\n"))
}
