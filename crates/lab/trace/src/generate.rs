//! A month of jobs with the published statistics of Venus.
