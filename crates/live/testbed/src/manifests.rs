//! Applies YAML files, as `kubectl apply` does.

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::discovery::Scope;
use kube::{Api, Client, ResourceExt, discovery};
use std::path::{Path, PathBuf};

/// Owner of the fields that are applied here.
const MANAGER: &str = "deepshare-testbed";

/// Why something was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// It is not YAML of Kubernetes objects.
    #[error("not a manifest: {0}")]
    Shape(String),
    /// The API server does not know the kind, or refused the object.
    #[error("cannot apply {what}: {error}")]
    Refused {
        /// Which object.
        what: String,
        /// What it said.
        error: Box<kube::Error>,
    },
    /// Something in a file.
    #[error("{}: {error}", path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What.
        error: Box<ManifestError>,
    },
}

/// Applies the objects of a YAML text, in their order, by server-side apply.
///
/// # Errors
/// If the text is not YAML of Kubernetes objects, or the API server refuses one; those before it
/// stay.
pub async fn apply(client: &Client, text: &str) -> Result<(), ManifestError> {
    let objects: Vec<Option<DynamicObject>> = serde_saphyr::from_multiple(text)
        .map_err(|error| ManifestError::Shape(error.to_string()))?;
    for object in objects.into_iter().flatten() {
        let types = object.types.clone().unwrap_or_default();
        let what = format!("{} {}", types.kind, object.name_any());
        let refused = |error| ManifestError::Refused { what: what.clone(), error: Box::new(error) };
        let kind = kube::core::GroupVersionKind::try_from(&types)
            .map_err(|error| ManifestError::Shape(error.to_string()))?;
        let (resource, capabilities) =
            discovery::pinned_kind(client, &kind).await.map_err(refused)?;
        let api: Api<DynamicObject> = match (capabilities.scope, object.namespace()) {
            (Scope::Namespaced, Some(namespace)) => {
                Api::namespaced_with(client.clone(), &namespace, &resource)
            }
            (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
            (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        };
        let ours = PatchParams::apply(MANAGER).force();
        api.patch(&object.name_any(), &ours, &Patch::Apply(&object)).await.map_err(refused)?;
        if types.kind == "CustomResourceDefinition" {
            served(client, &object.data["spec"]).await.map_err(refused)?;
        }
    }
    Ok(())
}

/// Waits until the API server serves a new kind: it answers 404 for a moment.
async fn served(client: &Client, definition: &serde_json::Value) -> Result<(), kube::Error> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (group, plural) = (text(&definition["group"]), text(&definition["names"]["plural"]));
    for version in definition["versions"].as_array().into_iter().flatten() {
        let path = format!("/apis/{group}/{}/{plural}?limit=1", text(&version["name"]));
        for tried in 1.. {
            let request = http::Request::get(&path).body(Vec::new());
            let answer = client.request_text(request.map_err(kube::Error::HttpError)?).await;
            match answer {
                Err(kube::Error::Api(status)) if status.code == 404 && tried < 100 => {}
                done => {
                    done?;
                    break;
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    }
    Ok(())
}

/// Applies a file, or every `.yaml` file of a folder by name.
///
/// # Errors
/// As [`apply`], with the file.
pub async fn apply_path(client: &Client, path: &Path) -> Result<(), ManifestError> {
    let read = |error| ManifestError::Read { path: path.to_owned(), error };
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(read)? {
            let file = entry.map_err(read)?.path();
            if file.extension().is_some_and(|extension| extension == "yaml") {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    for file in files {
        let text = std::fs::read_to_string(&file)
            .map_err(|error| ManifestError::Read { path: file.clone(), error })?;
        apply(client, &text)
            .await
            .map_err(|error| ManifestError::InFile { path: file, error: Box::new(error) })?;
    }
    Ok(())
}
