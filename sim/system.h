/* The driver's answers about the machine itself: the optional member "system" of the machine file.
 *
 *   "system": {"cc_cpu": 0, "cc_gpus": 1, "cc_environment": 0, "cc_feature": 0, "cc_dev_tools": 0,
 *              "cc_multi_gpu": 0, "cc_ready": 1,    confidential computing, by NVML's numbers
 *              "vgpu_heterogeneous": 0, "vgpu_warm_update": 0}
 *
 * Missing members are NOT_SUPPORTED. */
#ifndef GPULSE_SIM_SYSTEM_H
#define GPULSE_SIM_SYSTEM_H

#define SIM_SYSTEM_ANSWERS(X)                                                                      \
    X(CC_CPU, "cc_cpu")                                                                            \
    X(CC_GPUS, "cc_gpus")                                                                          \
    X(CC_ENVIRONMENT, "cc_environment")                                                            \
    X(CC_FEATURE, "cc_feature")                                                                    \
    X(CC_DEV_TOOLS, "cc_dev_tools")                                                                \
    X(CC_MULTI_GPU, "cc_multi_gpu")                                                                \
    X(CC_READY, "cc_ready")                                                                        \
    X(VGPU_HETEROGENEOUS, "vgpu_heterogeneous")                                                    \
    X(VGPU_WARM_UPDATE, "vgpu_warm_update")

enum sim_system_answer {
#define X(answer, key) SIM_SYSTEM_##answer,
    SIM_SYSTEM_ANSWERS(X)
#undef X
        SIM_SYSTEM_COUNT
};

#endif
