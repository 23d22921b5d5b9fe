//! The choice of a kernel.

use super::*;

#[test]
fn a_kernel_the_processor_lacks_is_a_clear_error() {
    let lacking = crate::search::SearchError::UnsupportedCpuKernel { asked: "AVX-512 IFMA" };
    assert_eq!(lacking.to_string(), "this processor has no AVX-512 IFMA; use `--cpu-kernel auto`");
    match Kernel::choose(KernelChoice::Ifma) {
        Ok(kernel) => assert_eq!(kernel.name, "ifma"),
        Err(error) => assert_eq!(error.to_string(), lacking.to_string()),
    }
    for (choice, name, lacks) in [(KernelChoice::Avx2, "avx2", "no AVX2;"), (KernelChoice::Neon, "neon", "no NEON;")] {
        match Kernel::choose(choice) {
            Ok(kernel) => assert_eq!(kernel.name, name),
            Err(error) => assert!(error.to_string().starts_with(&format!("this processor has {lacks}"))),
        }
    }
    assert_eq!(Kernel::choose(KernelChoice::Portable).unwrap().name, "portable");
    let refusal = |name: &str| name.parse::<KernelChoice>().unwrap_err().to_string();
    assert_eq!(refusal("avx9"), "`avx9` is not a CPU kernel; use `auto`, `ifma`, `avx2`, `neon` or `portable`");
}
