//! Requests to the API server, made by hand: minimal bodies, and answers that nobody needs are read
//! off the connection without being parsed.
//!
//! HTTP/1.1: every request in flight has a connection of its own, which the client keeps for the
//! next one. So the bounds on concurrency of [`writes`](crate::writes) are bounds on connections, too.

use http::{Method, Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use serde::Deserialize;
use std::time::{Duration, SystemTime};

/// An answer is not awaited for longer.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Of the text of a refusal, so much is kept.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// First pause before a try is repeated; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause before a try is repeated, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A server that asks for a longer pause is not obeyed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// A connection to the API server. Cheap to clone.
#[derive(Clone)]
pub struct Api {
    client: kube::Client,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    /// `POST`, `PATCH`, ….
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// `Content-Type` of the body.
    pub content: &'static str,
    /// The answer is an object: ask for its metadata only.
    pub metadata_only: bool,
    /// The body; may be empty.
    pub body: Vec<u8>,
}

/// Why a request came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status; 0: there was no answer, and whether the write happened is unknown.
    pub status: u16,
    /// The first of `details.causes` of the Status object; its parts may be empty.
    pub cause: Cause,
    /// What the server said.
    pub message: String,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.status {
            0 => write!(f, "no answer: {}", self.message),
            status => write!(f, "{status}: {}", self.message),
        }
    }
}

impl Call {
    /// JSON to create an object or subresource.
    pub fn post(path: String, body: &serde_json::Value) -> Call {
        Call::of(Method::POST, path, "application/json", body)
    }

    /// A JSON merge patch.
    pub fn merge(path: String, body: &serde_json::Value) -> Call {
        let call = Call::of(Method::PATCH, path, "application/merge-patch+json", body);
        Call { metadata_only: true, ..call }
    }

    /// A strategic merge patch, which knows conditions by `type` and containers by `name`.
    pub fn strategic(path: String, body: &serde_json::Value) -> Call {
        let call = Call::of(Method::PATCH, path, "application/strategic-merge-patch+json", body);
        Call { metadata_only: true, ..call }
    }

    /// A request with any method.
    pub fn of(
        method: Method,
        path: String,
        content: &'static str,
        body: &serde_json::Value,
    ) -> Call {
        Call { method, path, content, metadata_only: false, body: body.to_string().into_bytes() }
    }

    /// A plain read.
    pub fn get(path: String) -> Call {
        let content = "application/json";
        Call { method: Method::GET, path, content, metadata_only: false, body: Vec::new() }
    }
}

impl Refusal {
    /// There was no answer.
    pub fn silence(message: String) -> Refusal {
        Refusal { status: 0, cause: Cause::default(), message, retry_after: None }
    }

    /// True if the same request may soon succeed: no answer, too many requests, server trouble.
    pub fn is_transient(&self) -> bool {
        matches!(self.status, 0 | 429 | 500 | 502 | 503 | 504) && !self.is_budget()
    }

    /// True if a PodDisruptionBudget stands in the way.
    pub fn is_budget(&self) -> bool {
        self.status == 429 && self.cause.reason == "DisruptionBudget"
    }

    /// True if there is no such object any more, or another one of the same name. A patch that names
    /// the UID of the one before is answered as an attempt to change it.
    pub fn is_gone(&self) -> bool {
        matches!(self.status, 404 | 409) || self.status == 422 && self.cause.field == "metadata.uid"
    }

    /// How long to wait before try number `tries` + 1: as the server asks, else twice as long each
    /// time. Jittered by up to a quarter, so that many that failed at once do not return at once.
    pub fn pause(&self, tries: u32) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << tries.saturating_sub(1).min(16));
        let wait = match self.retry_after {
            Some(asked) => asked.min(LONGEST_RETRY_AFTER),
            None => doubled.min(LONGEST_PAUSE),
        };
        // The clock's last digits are chance enough for that.
        let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        wait + wait.mul_f64(f64::from(clock.subsec_nanos() % 1_000) / 4_000.0)
    }
}

impl Api {
    /// Requests over this client. Its own retries should be off: each kind of write has its rule.
    pub fn new(client: kube::Client) -> Api {
        Api { client }
    }

    /// Sends a request and reads its answer off the connection, unparsed.
    ///
    /// # Errors
    /// If the answer is no success, or there is none within fifteen seconds.
    pub async fn send(&self, call: &Call) -> Result<(), Refusal> {
        within(TIMEOUT, async {
            let mut body = self.answer(call).await?;
            // Left unread, the connection could not be used again.
            while let Some(frame) = body.frame().await {
                frame.map_err(|error| Refusal::silence(error.to_string()))?;
            }
            Ok(())
        })
        .await
    }

    /// Sends a request and parses its answer.
    ///
    /// # Errors
    /// As [`Api::send`]; also if the answer is not of this shape.
    pub async fn fetch<T: serde::de::DeserializeOwned>(&self, call: &Call) -> Result<T, Refusal> {
        within(TIMEOUT, async {
            let body = self.answer(call).await?.collect().await;
            let bytes = body.map_err(|error| Refusal::silence(error.to_string()))?.to_bytes();
            serde_json::from_slice(&bytes)
                .map_err(|error| Refusal::silence(format!("an answer of another shape: {error}")))
        })
        .await
    }

    /// Sends a request; the answer's body is still to be read.
    ///
    /// # Errors
    /// If the answer is no success, or there is none.
    pub async fn answer(&self, call: &Call) -> Result<Body, Refusal> {
        let accept = match call.metadata_only {
            true => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            false => "application/json",
        };
        let request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(header::ACCEPT, accept)
            .header(header::CONTENT_TYPE, call.content)
            .body(Body::from(call.body.clone()))
            .map_err(|error| Refusal::silence(format!("{}: {error}", call.path)))?;
        let sent = self.client.send(request).await;
        let response = sent.map_err(|error| Refusal::silence(error.to_string()))?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        let retry_after = response.headers().get(header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
        let status = response.status().as_u16();
        let said = said(response.into_body()).await;
        let retry_after = retry_after.map(Duration::from_secs);
        let cause = said.details.causes.into_iter().next().unwrap_or_default();
        Err(Refusal { status, cause, message: said.message, retry_after })
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    let late = |_| Refusal::silence(format!("nothing came within {} s", limit.as_secs()));
    tokio::time::timeout(limit, work).await.map_err(late)?
}

/// What we read of a Status object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

/// Why the server refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// A word, as in `DisruptionBudget`.
    pub reason: String,
    /// The field that is wrong, as in `metadata.uid`.
    pub field: String,
}

/// The Status object of a refusal; where other text came instead, that is the message.
async fn said(mut body: Body) -> Status {
    let mut bytes = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        if let Ok(data) = frame.into_data()
            && bytes.len() < MAX_REFUSAL_BYTES
        {
            bytes.extend_from_slice(&data);
        }
    }
    serde_json::from_slice(&bytes).unwrap_or_else(|_| Status {
        message: String::from_utf8_lossy(&bytes).trim().to_owned(),
        ..Status::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, retry_after: Option<u64>) -> Refusal {
        let retry_after = retry_after.map(Duration::from_secs);
        Refusal { status, retry_after, ..Refusal::silence(String::new()) }
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_the_server_may_ask_for_longer_ones() {
        let ms = |tries, retry_after| refusal(503, retry_after).pause(tries).as_millis();
        assert!((100..=125).contains(&ms(1, None)));
        assert!((400..=500).contains(&ms(3, None)));
        assert!((5_000..=6_250).contains(&ms(40, None)));
        assert!((7_000..=8_750).contains(&ms(1, Some(7))));
        assert!(ms(1, Some(86_400)) <= 75_000, "a server cannot silence us for a day");
    }

    #[test]
    fn only_trouble_of_the_server_is_worth_another_try() {
        assert!([0, 429, 500, 503].iter().all(|&status| refusal(status, None).is_transient()));
        assert!(![400, 401, 403, 404, 409, 422].iter().any(|&s| refusal(s, None).is_transient()));
    }
}
