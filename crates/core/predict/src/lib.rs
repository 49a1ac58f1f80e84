//! Run-time predictors: pure, fed by the driver, never by the engine.
//!
//! The driver asks for an estimate when a job arrives and tells the engine the answer as an event;
//! when a job ends it tells the predictor how long it ran. No predictor sees the future of the job
//! it predicts.

mod running_mean;

pub use running_mean::RunningMean;
