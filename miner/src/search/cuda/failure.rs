//! Reasons why a GPU failed, in words for the operator.

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

/// The text of the driver's error. If only a new process can use GPUs again, it says so.
pub fn reason(error: DriverError) -> String {
    format!("{error}{}", remedy(error.0))
}

/// The remedy after an error of the driver; empty if there is none.
fn remedy(result: CUresult) -> &'static str {
    if ends_the_process(result) {
        "; after this error CUDA refuses every GPU until npubbot is started again"
    } else {
        ""
    }
}

/// Whether every later call of the process returns this error too, for any GPU. For these errors
/// CUDA's manual says that the process must be ended and launched again (`cuda.h`, `CUresult`).
fn ends_the_process(result: CUresult) -> bool {
    use CUresult::*;
    matches!(
        result,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the remedy is tested: the error's own text comes from the driver's library, which may
    /// be missing.
    #[test]
    fn an_error_that_ends_the_process_has_a_remedy() {
        assert!(remedy(CUresult::CUDA_ERROR_LAUNCH_FAILED).ends_with("until npubbot is started again"));
        assert!(remedy(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS).contains("every GPU"));
        assert_eq!(remedy(CUresult::CUDA_ERROR_OUT_OF_MEMORY), "");
        assert_eq!(remedy(CUresult::CUDA_ERROR_NO_DEVICE), "");
    }
}
