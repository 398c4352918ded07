/* All functions of the NVML ABI that gpulse calls or its simulated driver implements. */
#ifndef GPULSE_ABI_NVML_FUNCTIONS_H
#define GPULSE_ABI_NVML_FUNCTIONS_H

/* The oldest checked driver; its functions may be older. */
#define NVML_OLDEST_BRANCH 440u

/* X(branch, return type, name, (parameters)). The branch is the first driver that has the function
 * according to public headers (440, from 2019, is the oldest one checked); some drivers had a
 * symbol before its header was published. A library may lack any of them: the newest of a family is
 * tried first. */
#define NVML_FUNCTIONS(X)                                                                          \
    X(440, nvmlReturn_t, nvmlInit, (void))                                                         \
    X(440, nvmlReturn_t, nvmlInit_v2, (void))                                                      \
    X(440, nvmlReturn_t, nvmlInitWithFlags, (unsigned int flags))                                  \
    X(440, nvmlReturn_t, nvmlShutdown, (void))                                                     \
    X(440, const char *, nvmlErrorString, (nvmlReturn_t result))                                   \
    X(440, nvmlReturn_t, nvmlSystemGetDriverVersion, (char *version, unsigned int length))         \
    X(440, nvmlReturn_t, nvmlSystemGetNVMLVersion, (char *version, unsigned int length))           \
    X(560, nvmlReturn_t, nvmlSystemGetDriverBranch,                                                \
      (nvmlSystemDriverBranchInfo_t *branchInfo, unsigned int length))                             \
    X(440, nvmlReturn_t, nvmlSystemGetCudaDriverVersion, (int *version))                           \
    X(440, nvmlReturn_t, nvmlSystemGetCudaDriverVersion_v2, (int *version))                        \
    X(440, nvmlReturn_t, nvmlSystemGetProcessName,                                                 \
      (unsigned int pid, char *name, unsigned int length))                                         \
    X(535, nvmlReturn_t, nvmlSystemGetConfComputeCapabilities,                                     \
      (nvmlConfComputeSystemCaps_t *capabilities))                                                 \
    X(535, nvmlReturn_t, nvmlSystemGetConfComputeState, (nvmlConfComputeSystemState_t *state))     \
    X(550, nvmlReturn_t, nvmlSystemGetConfComputeSettings,                                         \
      (nvmlSystemConfComputeSettings_t *settings))                                                 \
    X(535, nvmlReturn_t, nvmlSystemGetConfComputeGpusReadyState, (unsigned int *isAcceptingWork))  \
    X(440, nvmlReturn_t, nvmlDeviceGetCount, (unsigned int *count))                                \
    X(440, nvmlReturn_t, nvmlDeviceGetCount_v2, (unsigned int *count))                             \
    X(465, nvmlReturn_t, nvmlGetExcludedDeviceCount, (unsigned int *deviceCount))                  \
    X(465, nvmlReturn_t, nvmlGetExcludedDeviceInfoByIndex,                                         \
      (unsigned int index, nvmlExcludedDeviceInfo_t *info))                                        \
    X(440, nvmlReturn_t, nvmlDeviceGetHandleByIndex, (unsigned int index, nvmlDevice_t *device))   \
    X(440, nvmlReturn_t, nvmlDeviceGetHandleByIndex_v2,                                            \
      (unsigned int index, nvmlDevice_t *device))                                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device))      \
    X(440, nvmlReturn_t, nvmlDeviceGetHandleByPciBusId,                                            \
      (const char *bus_id, nvmlDevice_t *device))                                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetHandleByPciBusId_v2,                                         \
      (const char *bus_id, nvmlDevice_t *device))                                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetHandleBySerial, (const char *serial, nvmlDevice_t *device))  \
    X(440, nvmlReturn_t, nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned int *index))           \
    X(440, nvmlReturn_t, nvmlDeviceGetUUID,                                                        \
      (nvmlDevice_t device, char *uuid, unsigned int length))                                      \
    X(440, nvmlReturn_t, nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned int *minor))     \
    X(440, nvmlReturn_t, nvmlDeviceGetName,                                                        \
      (nvmlDevice_t device, char *name, unsigned int length))                                      \
    X(440, nvmlReturn_t, nvmlDeviceGetBrand, (nvmlDevice_t device, nvmlBrandType_t *type))         \
    X(440, nvmlReturn_t, nvmlDeviceGetArchitecture,                                                \
      (nvmlDevice_t device, nvmlDeviceArchitecture_t *arch))                                       \
    X(440, nvmlReturn_t, nvmlDeviceGetCudaComputeCapability,                                       \
      (nvmlDevice_t device, int *major, int *minor))                                               \
    X(440, nvmlReturn_t, nvmlDeviceGetSerial,                                                      \
      (nvmlDevice_t device, char *serial, unsigned int length))                                    \
    X(440, nvmlReturn_t, nvmlDeviceGetBoardId, (nvmlDevice_t device, unsigned int *board_id))      \
    X(440, nvmlReturn_t, nvmlDeviceGetBoardPartNumber,                                             \
      (nvmlDevice_t device, char *part_number, unsigned int length))                               \
    X(440, nvmlReturn_t, nvmlDeviceGetVbiosVersion,                                                \
      (nvmlDevice_t device, char *version, unsigned int length))                                   \
    X(440, nvmlReturn_t, nvmlDeviceGetInforomImageVersion,                                         \
      (nvmlDevice_t device, char *version, unsigned int length))                                   \
    X(440, nvmlReturn_t, nvmlDeviceGetInforomVersion,                                              \
      (nvmlDevice_t device, nvmlInforomObject_t object, char *version, unsigned int length))       \
    X(440, nvmlReturn_t, nvmlDeviceValidateInforom, (nvmlDevice_t device))                         \
    X(545, nvmlReturn_t, nvmlDeviceGetLastBBXFlushTime,                                            \
      (nvmlDevice_t device, unsigned long long *timestamp, unsigned long *durationUs))             \
    X(610, nvmlReturn_t, nvmlDeviceGetBBXTimeData_v1,                                              \
      (nvmlDevice_t device, nvmlBBXTimeData_v1_t *timeData))                                       \
    X(580, nvmlReturn_t, nvmlDeviceGetPdi, (nvmlDevice_t device, nvmlPdi_t *pdi))                  \
    X(590, nvmlReturn_t, nvmlDeviceGetHostname_v1,                                                 \
      (nvmlDevice_t device, nvmlHostname_v1_t *hostname))                                          \
    X(535, nvmlReturn_t, nvmlDeviceGetModuleId, (nvmlDevice_t device, unsigned int *moduleId))     \
    X(440, nvmlReturn_t, nvmlDeviceGetMultiGpuBoard,                                               \
      (nvmlDevice_t device, unsigned int *multiGpuBool))                                           \
    X(510, nvmlReturn_t, nvmlDeviceGetNumGpuCores, (nvmlDevice_t device, unsigned int *numCores))  \
    X(510, nvmlReturn_t, nvmlDeviceGetMemoryBusWidth,                                              \
      (nvmlDevice_t device, unsigned int *busWidth))                                               \
    X(495, nvmlReturn_t, nvmlDeviceGetIrqNum, (nvmlDevice_t device, unsigned int *irqNum))         \
    X(515, nvmlReturn_t, nvmlDeviceGetGspFirmwareVersion, (nvmlDevice_t device, char *version))    \
    X(515, nvmlReturn_t, nvmlDeviceGetGspFirmwareMode,                                             \
      (nvmlDevice_t device, unsigned int *isEnabled, unsigned int *defaultMode))                   \
    X(440, nvmlReturn_t, nvmlDeviceGetDisplayMode, (nvmlDevice_t device, nvmlEnableState_t *mode)) \
    X(440, nvmlReturn_t, nvmlDeviceGetDisplayActive,                                               \
      (nvmlDevice_t device, nvmlEnableState_t *active))                                            \
    X(440, nvmlReturn_t, nvmlDeviceGetPciInfo, (nvmlDevice_t device, nvmlPciInfo_t *pci))          \
    X(440, nvmlReturn_t, nvmlDeviceGetPciInfo_v2, (nvmlDevice_t device, nvmlPciInfo_t *pci))       \
    X(440, nvmlReturn_t, nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t *pci))       \
    X(550, nvmlReturn_t, nvmlDeviceGetPciInfoExt, (nvmlDevice_t device, nvmlPciInfoExt_t *pci))    \
    X(440, nvmlReturn_t, nvmlDeviceGetMaxPcieLinkGeneration,                                       \
      (nvmlDevice_t device, unsigned int *gen))                                                    \
    X(525, nvmlReturn_t, nvmlDeviceGetGpuMaxPcieLinkGeneration,                                    \
      (nvmlDevice_t device, unsigned int *gen))                                                    \
    X(440, nvmlReturn_t, nvmlDeviceGetMaxPcieLinkWidth,                                            \
      (nvmlDevice_t device, unsigned int *width))                                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetCurrPcieLinkGeneration,                                      \
      (nvmlDevice_t device, unsigned int *gen))                                                    \
    X(440, nvmlReturn_t, nvmlDeviceGetCurrPcieLinkWidth,                                           \
      (nvmlDevice_t device, unsigned int *width))                                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetPcieThroughput,                                              \
      (nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *kb_per_s))                \
    X(440, nvmlReturn_t, nvmlDeviceGetPcieReplayCounter,                                           \
      (nvmlDevice_t device, unsigned int *value))                                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t *memory))     \
    X(510, nvmlReturn_t, nvmlDeviceGetMemoryInfo_v2,                                               \
      (nvmlDevice_t device, nvmlMemory_v2_t *memory))                                              \
    X(440, nvmlReturn_t, nvmlDeviceGetBAR1MemoryInfo,                                              \
      (nvmlDevice_t device, nvmlBAR1Memory_t *memory))                                             \
    X(535, nvmlReturn_t, nvmlDeviceGetConfComputeMemSizeInfo,                                      \
      (nvmlDevice_t device, nvmlConfComputeMemSizeInfo_t *memInfo))                                \
    X(535, nvmlReturn_t, nvmlDeviceGetConfComputeProtectedMemoryUsage,                             \
      (nvmlDevice_t device, nvmlMemory_t *memory))                                                 \
    X(440, nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses,                                     \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                     \
    X(455, nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses_v2,                                  \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos))                     \
    X(510, nvmlReturn_t, nvmlDeviceGetComputeRunningProcesses_v3,                                  \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                        \
    X(440, nvmlReturn_t, nvmlDeviceGetGraphicsRunningProcesses,                                    \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                     \
    X(455, nvmlReturn_t, nvmlDeviceGetGraphicsRunningProcesses_v2,                                 \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos))                     \
    X(510, nvmlReturn_t, nvmlDeviceGetGraphicsRunningProcesses_v3,                                 \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                        \
    X(470, nvmlReturn_t, nvmlDeviceGetMPSComputeRunningProcesses,                                  \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos))                     \
    X(470, nvmlReturn_t, nvmlDeviceGetMPSComputeRunningProcesses_v2,                               \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v2_t *infos))                     \
    X(510, nvmlReturn_t, nvmlDeviceGetMPSComputeRunningProcesses_v3,                               \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos))                        \
    X(440, nvmlReturn_t, nvmlDeviceGetProcessUtilization,                                          \
      (nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples, unsigned int *count,          \
       unsigned long long last_seen))                                                              \
    X(550, nvmlReturn_t, nvmlDeviceGetProcessesUtilizationInfo,                                    \
      (nvmlDevice_t device, nvmlProcessesUtilizationInfo_t *procesesUtilInfo))                     \
    X(440, nvmlReturn_t, nvmlDeviceGetUtilizationRates,                                            \
      (nvmlDevice_t device, nvmlUtilization_t *utilization))                                       \
    X(440, nvmlReturn_t, nvmlDeviceGetEncoderUtilization,                                          \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(440, nvmlReturn_t, nvmlDeviceGetDecoderUtilization,                                          \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(535, nvmlReturn_t, nvmlDeviceGetJpgUtilization,                                              \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(535, nvmlReturn_t, nvmlDeviceGetOfaUtilization,                                              \
      (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us))                       \
    X(440, nvmlReturn_t, nvmlDeviceGetSamples,                                                     \
      (nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long lastSeenTimeStamp,         \
       nvmlValueType_t *sampleValType, unsigned int *sampleCount, nvmlSample_t *samples))          \
    X(440, nvmlReturn_t, nvmlDeviceGetEncoderStats,                                                \
      (nvmlDevice_t device, unsigned int *sessions, unsigned int *fps, unsigned int *latency_us))  \
    X(440, nvmlReturn_t, nvmlDeviceGetEncoderSessions,                                             \
      (nvmlDevice_t device, unsigned int *sessionCount, nvmlEncoderSessionInfo_t *sessionInfos))   \
    X(440, nvmlReturn_t, nvmlDeviceGetFBCStats, (nvmlDevice_t device, nvmlFBCStats_t *fbcStats))   \
    X(440, nvmlReturn_t, nvmlDeviceGetFBCSessions,                                                 \
      (nvmlDevice_t device, unsigned int *sessionCount, nvmlFBCSessionInfo_t *sessionInfo))        \
    X(440, nvmlReturn_t, nvmlDeviceGetClockInfo,                                                   \
      (nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz))                              \
    X(440, nvmlReturn_t, nvmlDeviceGetMaxClockInfo,                                                \
      (nvmlDevice_t device, nvmlClockType_t type, unsigned int *mhz))                              \
    X(440, nvmlReturn_t, nvmlDeviceGetClock,                                                       \
      (nvmlDevice_t device, nvmlClockType_t clockType, nvmlClockId_t clockId,                      \
       unsigned int *clockMHz))                                                                    \
    X(440, nvmlReturn_t, nvmlDeviceGetAutoBoostedClocksEnabled,                                    \
      (nvmlDevice_t device, nvmlEnableState_t *isEnabled, nvmlEnableState_t *defaultIsEnabled))    \
    X(440, nvmlReturn_t, nvmlDeviceGetAPIRestriction,                                              \
      (nvmlDevice_t device, nvmlRestrictedAPI_t apiType, nvmlEnableState_t *isRestricted))         \
    X(440, nvmlReturn_t, nvmlDeviceGetMaxCustomerBoostClock,                                       \
      (nvmlDevice_t device, nvmlClockType_t clockType, unsigned int *clockMHz))                    \
    X(440, nvmlReturn_t, nvmlDeviceGetApplicationsClock,                                           \
      (nvmlDevice_t device, nvmlClockType_t clockType, unsigned int *clockMHz))                    \
    X(440, nvmlReturn_t, nvmlDeviceGetDefaultApplicationsClock,                                    \
      (nvmlDevice_t device, nvmlClockType_t clockType, unsigned int *clockMHz))                    \
    X(440, nvmlReturn_t, nvmlDeviceGetSupportedMemoryClocks,                                       \
      (nvmlDevice_t device, unsigned int *count, unsigned int *clocksMHz))                         \
    X(440, nvmlReturn_t, nvmlDeviceGetSupportedGraphicsClocks,                                     \
      (nvmlDevice_t device, unsigned int memoryClockMHz, unsigned int *count,                      \
       unsigned int *clocksMHz))                                                                   \
    X(555, nvmlReturn_t, nvmlDeviceGetClockOffsets,                                                \
      (nvmlDevice_t device, nvmlClockOffset_t *info))                                              \
    X(515, nvmlReturn_t, nvmlDeviceGetGpcClkVfOffset, (nvmlDevice_t device, int *offset))          \
    X(520, nvmlReturn_t, nvmlDeviceGetMemClkVfOffset, (nvmlDevice_t device, int *offset))          \
    X(520, nvmlReturn_t, nvmlDeviceGetGpcClkMinMaxVfOffset,                                        \
      (nvmlDevice_t device, int *min_offset, int *max_offset))                                     \
    X(520, nvmlReturn_t, nvmlDeviceGetMemClkMinMaxVfOffset,                                        \
      (nvmlDevice_t device, int *min_offset, int *max_offset))                                     \
    X(535, nvmlReturn_t, nvmlDeviceGetCurrentClocksEventReasons,                                   \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(535, nvmlReturn_t, nvmlDeviceGetSupportedClocksEventReasons,                                 \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(440, nvmlReturn_t, nvmlDeviceGetCurrentClocksThrottleReasons,                                \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(440, nvmlReturn_t, nvmlDeviceGetSupportedClocksThrottleReasons,                              \
      (nvmlDevice_t device, unsigned long long *reasons))                                          \
    X(440, nvmlReturn_t, nvmlDeviceGetTemperature,                                                 \
      (nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *celsius))               \
    X(570, nvmlReturn_t, nvmlDeviceGetTemperatureV,                                                \
      (nvmlDevice_t device, nvmlTemperature_t *temperature))                                       \
    X(440, nvmlReturn_t, nvmlDeviceGetTemperatureThreshold,                                        \
      (nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned int *celsius))              \
    X(570, nvmlReturn_t, nvmlDeviceGetMarginTemperature,                                           \
      (nvmlDevice_t device, nvmlMarginTemperature_t *margin))                                      \
    X(510, nvmlReturn_t, nvmlDeviceGetNumFans, (nvmlDevice_t device, unsigned int *count))         \
    X(440, nvmlReturn_t, nvmlDeviceGetFanSpeed, (nvmlDevice_t device, unsigned int *percent))      \
    X(440, nvmlReturn_t, nvmlDeviceGetFanSpeed_v2,                                                 \
      (nvmlDevice_t device, unsigned int fan, unsigned int *percent))                              \
    X(570, nvmlReturn_t, nvmlDeviceGetFanSpeedRPM,                                                 \
      (nvmlDevice_t device, nvmlFanSpeedInfo_t *fanSpeed))                                         \
    X(520, nvmlReturn_t, nvmlDeviceGetTargetFanSpeed,                                              \
      (nvmlDevice_t device, unsigned int fan, unsigned int *targetSpeed))                          \
    X(515, nvmlReturn_t, nvmlDeviceGetMinMaxFanSpeed,                                              \
      (nvmlDevice_t device, unsigned int *minSpeed, unsigned int *maxSpeed))                       \
    X(525, nvmlReturn_t, nvmlDeviceGetFanControlPolicy_v2,                                         \
      (nvmlDevice_t device, unsigned int fan, nvmlFanControlPolicy_t *policy))                     \
    X(440, nvmlReturn_t, nvmlDeviceGetPowerUsage, (nvmlDevice_t device, unsigned int *mw))         \
    X(440, nvmlReturn_t, nvmlDeviceGetTotalEnergyConsumption,                                      \
      (nvmlDevice_t device, unsigned long long *mj))                                               \
    X(440, nvmlReturn_t, nvmlDeviceGetPowerManagementLimit,                                        \
      (nvmlDevice_t device, unsigned int *mw))                                                     \
    X(440, nvmlReturn_t, nvmlDeviceGetPowerManagementLimitConstraints,                             \
      (nvmlDevice_t device, unsigned int *min_mw, unsigned int *max_mw))                           \
    X(440, nvmlReturn_t, nvmlDeviceGetPowerManagementDefaultLimit,                                 \
      (nvmlDevice_t device, unsigned int *mw))                                                     \
    X(440, nvmlReturn_t, nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t device, unsigned int *mw)) \
    X(440, nvmlReturn_t, nvmlDeviceGetPowerManagementMode,                                         \
      (nvmlDevice_t device, nvmlEnableState_t *mode))                                              \
    X(510, nvmlReturn_t, nvmlDeviceGetPowerSource,                                                 \
      (nvmlDevice_t device, nvmlPowerSource_t *powerSource))                                       \
    X(440, nvmlReturn_t, nvmlDeviceGetPowerState, (nvmlDevice_t device, nvmlPstates_t *state))     \
    X(440, nvmlReturn_t, nvmlDeviceGetPerformanceState,                                            \
      (nvmlDevice_t device, nvmlPstates_t *state))                                                 \
    X(440, nvmlReturn_t, nvmlDeviceGetEccMode,                                                     \
      (nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending))               \
    X(515, nvmlReturn_t, nvmlDeviceGetDefaultEccMode,                                              \
      (nvmlDevice_t device, nvmlEnableState_t *defaultMode))                                       \
    X(440, nvmlReturn_t, nvmlDeviceGetTotalEccErrors,                                              \
      (nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,              \
       unsigned long long *count))                                                                 \
    X(440, nvmlReturn_t, nvmlDeviceGetMemoryErrorCounter,                                          \
      (nvmlDevice_t device, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,              \
       nvmlMemoryLocation_t location, unsigned long long *count))                                  \
    X(550, nvmlReturn_t, nvmlDeviceGetSramEccErrorStatus,                                          \
      (nvmlDevice_t device, nvmlEccSramErrorStatus_t *status))                                     \
    X(440, nvmlReturn_t, nvmlDeviceGetRetiredPages,                                                \
      (nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *pageCount,              \
       unsigned long long *addresses))                                                             \
    X(440, nvmlReturn_t, nvmlDeviceGetRetiredPages_v2,                                             \
      (nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *pageCount,              \
       unsigned long long *addresses, unsigned long long *timestamps))                             \
    X(440, nvmlReturn_t, nvmlDeviceGetRetiredPagesPendingStatus,                                   \
      (nvmlDevice_t device, nvmlEnableState_t *isPending))                                         \
    X(440, nvmlReturn_t, nvmlDeviceGetRemappedRows,                                                \
      (nvmlDevice_t device, unsigned int *corrRows, unsigned int *uncRows,                         \
       unsigned int *isPending, unsigned int *failureOccurred))                                    \
    X(595, nvmlReturn_t, nvmlDeviceGetRemappedRows_v2,                                             \
      (nvmlDevice_t device, nvmlRemappedRowsInfo_v2_t *info))                                      \
    X(455, nvmlReturn_t, nvmlDeviceGetRowRemapperHistogram,                                        \
      (nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *values))                             \
    X(580, nvmlReturn_t, nvmlDeviceGetRepairStatus,                                                \
      (nvmlDevice_t device, nvmlRepairStatus_t *repairStatus))                                     \
    X(590, nvmlReturn_t, nvmlDeviceGetUnrepairableMemoryFlag_v1,                                   \
      (nvmlDevice_t device, nvmlUnrepairableMemoryStatus_v1_t *unrepairableMemoryStatus))          \
    X(570, nvmlReturn_t, nvmlDeviceGetDramEncryptionMode,                                          \
      (nvmlDevice_t device, nvmlDramEncryptionInfo_t *current, nvmlDramEncryptionInfo_t *pending)) \
    X(440, nvmlReturn_t, nvmlDeviceGetFieldValues,                                                 \
      (nvmlDevice_t device, int count, nvmlFieldValue_t *values))                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetComputeMode, (nvmlDevice_t device, nvmlComputeMode_t *mode)) \
    X(440, nvmlReturn_t, nvmlDeviceGetPersistenceMode,                                             \
      (nvmlDevice_t device, nvmlEnableState_t *mode))                                              \
    X(440, nvmlReturn_t, nvmlDeviceGetAccountingMode,                                              \
      (nvmlDevice_t device, nvmlEnableState_t *mode))                                              \
    X(440, nvmlReturn_t, nvmlDeviceGetAccountingBufferSize,                                        \
      (nvmlDevice_t device, unsigned int *size))                                                   \
    X(440, nvmlReturn_t, nvmlDeviceGetAccountingPids,                                              \
      (nvmlDevice_t device, unsigned int *count, unsigned int *pids))                              \
    X(440, nvmlReturn_t, nvmlDeviceGetAccountingStats,                                             \
      (nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats))                       \
    X(440, nvmlReturn_t, nvmlDeviceGetVirtualizationMode,                                          \
      (nvmlDevice_t device, nvmlGpuVirtualizationMode_t *mode))                                    \
    X(440, nvmlReturn_t, nvmlDeviceGetDriverModel,                                                 \
      (nvmlDevice_t device, nvmlDriverModel_t *current, nvmlDriverModel_t *pending))               \
    X(555, nvmlReturn_t, nvmlDeviceGetDriverModel_v2,                                              \
      (nvmlDevice_t device, nvmlDriverModel_t *current, nvmlDriverModel_t *pending))               \
    X(440, nvmlReturn_t, nvmlDeviceGetGpuOperationMode,                                            \
      (nvmlDevice_t device, nvmlGpuOperationMode_t *current, nvmlGpuOperationMode_t *pending))     \
    X(440, nvmlReturn_t, nvmlDeviceGetHostVgpuMode,                                                \
      (nvmlDevice_t device, nvmlHostVgpuMode_t *pHostVgpuMode))                                    \
    X(525, nvmlReturn_t, nvmlGetVgpuDriverCapabilities,                                            \
      (nvmlVgpuDriverCapability_t capability, unsigned int *capResult))                            \
    X(525, nvmlReturn_t, nvmlDeviceGetVgpuCapabilities,                                            \
      (nvmlDevice_t device, nvmlDeviceVgpuCapability_t capability, unsigned int *capResult))       \
    X(550, nvmlReturn_t, nvmlDeviceGetVgpuHeterogeneousMode,                                       \
      (nvmlDevice_t device, nvmlVgpuHeterogeneousMode_t *mode))                                    \
    X(570, nvmlReturn_t, nvmlDeviceGetAddressingMode,                                              \
      (nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode))                                     \
    X(440, nvmlReturn_t, nvmlDeviceGetBridgeChipInfo,                                              \
      (nvmlDevice_t device, nvmlBridgeChipHierarchy_t *chips))                                     \
    X(555, nvmlReturn_t, nvmlDeviceGetCapabilities,                                                \
      (nvmlDevice_t device, nvmlDeviceCapabilities_t *caps))                                       \
    X(550, nvmlReturn_t, nvmlDeviceGetNumaNodeId, (nvmlDevice_t device, unsigned int *node))       \
    X(440, nvmlReturn_t, nvmlDeviceGetNvLinkState,                                                 \
      (nvmlDevice_t device, unsigned int link, nvmlEnableState_t *isActive))                       \
    X(440, nvmlReturn_t, nvmlDeviceGetNvLinkVersion,                                               \
      (nvmlDevice_t device, unsigned int link, unsigned int *version))                             \
    X(440, nvmlReturn_t, nvmlDeviceGetNvLinkCapability,                                            \
      (nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t capability,                  \
       unsigned int *capResult))                                                                   \
    X(440, nvmlReturn_t, nvmlDeviceGetNvLinkRemotePciInfo,                                         \
      (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci))                                \
    X(440, nvmlReturn_t, nvmlDeviceGetNvLinkRemotePciInfo_v2,                                      \
      (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci))                                \
    X(470, nvmlReturn_t, nvmlDeviceGetNvLinkRemoteDeviceType,                                      \
      (nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *pNvLinkDeviceType))      \
    X(440, nvmlReturn_t, nvmlDeviceGetNvLinkErrorCounter,                                          \
      (nvmlDevice_t device, unsigned int link, nvmlNvLinkErrorCounter_t counter,                   \
       unsigned long long *counterValue))                                                          \
    X(440, nvmlReturn_t, nvmlDeviceGetTopologyCommonAncestor,                                      \
      (nvmlDevice_t device1, nvmlDevice_t device2, nvmlGpuTopologyLevel_t *pathInfo))              \
    X(440, nvmlReturn_t, nvmlDeviceGetP2PStatus,                                                   \
      (nvmlDevice_t device1, nvmlDevice_t device2,                                                 \
       nvmlGpuP2PCapsIndex_t p2pIndex,nvmlGpuP2PStatus_t *p2pStatus))                              \
    X(440, nvmlReturn_t, nvmlDeviceGetCpuAffinity,                                                 \
      (nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet))                       \
    X(440, nvmlReturn_t, nvmlDeviceGetCpuAffinityWithinScope,                                      \
      (nvmlDevice_t device, unsigned int cpuSetSize, unsigned long *cpuSet,                        \
       nvmlAffinityScope_t scope))                                                                 \
    X(440, nvmlReturn_t, nvmlDeviceGetMemoryAffinity,                                              \
      (nvmlDevice_t device, unsigned int nodeSetSize, unsigned long *nodeSet,                      \
       nvmlAffinityScope_t scope))                                                                 \
    X(525, nvmlReturn_t, nvmlDeviceGetGpuFabricInfo,                                               \
      (nvmlDevice_t device, nvmlGpuFabricInfo_t *gpuFabricInfo))                                   \
    X(550, nvmlReturn_t, nvmlDeviceGetGpuFabricInfoV,                                              \
      (nvmlDevice_t device, nvmlGpuFabricInfoV_t *gpuFabricInfo))                                  \
    X(545, nvmlReturn_t, nvmlDeviceGetC2cModeInfoV,                                                \
      (nvmlDevice_t device, nvmlC2cModeInfo_v1_t *c2cModeInfo))                                    \
    X(570, nvmlReturn_t, nvmlDeviceGetPlatformInfo,                                                \
      (nvmlDevice_t device, nvmlPlatformInfo_t *platformInfo))                                     \
    X(570, nvmlReturn_t, nvmlDeviceWorkloadPowerProfileGetCurrentProfiles,                         \
      (nvmlDevice_t device, nvmlWorkloadPowerProfileCurrentProfiles_t *profiles))                  \
    X(440, nvmlReturn_t, nvmlDeviceGetMigMode,                                                     \
      (nvmlDevice_t device, unsigned int *current, unsigned int *pending))                         \
    X(440, nvmlReturn_t, nvmlDeviceGetMaxMigDeviceCount,                                           \
      (nvmlDevice_t device, unsigned int *count))                                                  \
    X(440, nvmlReturn_t, nvmlDeviceGetMigDeviceHandleByIndex,                                      \
      (nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig))                                \
    X(440, nvmlReturn_t, nvmlDeviceIsMigDeviceHandle, (nvmlDevice_t device, unsigned int *is_mig)) \
    X(440, nvmlReturn_t, nvmlDeviceGetDeviceHandleFromMigDeviceHandle,                             \
      (nvmlDevice_t mig, nvmlDevice_t *device))                                                    \
    X(440, nvmlReturn_t, nvmlDeviceGetGpuInstanceId, (nvmlDevice_t device, unsigned int *id))      \
    X(440, nvmlReturn_t, nvmlDeviceGetComputeInstanceId, (nvmlDevice_t device, unsigned int *id))  \
    X(455, nvmlReturn_t, nvmlDeviceGetAttributes_v2,                                               \
      (nvmlDevice_t device, nvmlDeviceAttributes_t *attributes))                                   \
    X(440, nvmlReturn_t, nvmlDeviceGetGpuInstanceProfileInfo,                                      \
      (nvmlDevice_t device, unsigned int profile, nvmlGpuInstanceProfileInfo_t *info))             \
    X(510, nvmlReturn_t, nvmlDeviceGetGpuInstanceProfileInfoV,                                     \
      (nvmlDevice_t device, unsigned int profile, nvmlGpuInstanceProfileInfo_v2_t *info))          \
    X(470, nvmlReturn_t, nvmlDeviceGetGpuInstancePossiblePlacements_v2,                            \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstancePlacement_t *placements,        \
       unsigned int *count))                                                                       \
    X(440, nvmlReturn_t, nvmlDeviceGetGpuInstanceRemainingCapacity,                                \
      (nvmlDevice_t device, unsigned int profileId, unsigned int *count))                          \
    X(440, nvmlReturn_t, nvmlDeviceGetGpuInstances,                                                \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstance_t *gpuInstances,               \
       unsigned int *count))                                                                       \
    X(440, nvmlReturn_t, nvmlDeviceGetGpuInstanceById,                                             \
      (nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *gpuInstance))                      \
    X(440, nvmlReturn_t, nvmlGpuInstanceGetInfo,                                                   \
      (nvmlGpuInstance_t gpuInstance, nvmlGpuInstanceInfo_t *info))                                \
    X(440, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceProfileInfo,                             \
      (nvmlGpuInstance_t gpuInstance, unsigned int profile, unsigned int engProfile,               \
       nvmlComputeInstanceProfileInfo_t *info))                                                    \
    X(510, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceProfileInfoV,                            \
      (nvmlGpuInstance_t gpuInstance, unsigned int profile, unsigned int engProfile,               \
       nvmlComputeInstanceProfileInfo_v2_t *info))                                                 \
    X(440, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceRemainingCapacity,                       \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId, unsigned int *count))                \
    X(440, nvmlReturn_t, nvmlGpuInstanceGetComputeInstances,                                       \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId,                                      \
       nvmlComputeInstance_t *computeInstances, unsigned int *count))                              \
    X(440, nvmlReturn_t, nvmlGpuInstanceGetComputeInstanceById,                                    \
      (nvmlGpuInstance_t gpuInstance, unsigned int id, nvmlComputeInstance_t *computeInstance))    \
    X(460, nvmlReturn_t, nvmlComputeInstanceGetInfo_v2,                                            \
      (nvmlComputeInstance_t computeInstance, nvmlComputeInstanceInfo_t *info))                    \
    X(520, nvmlReturn_t, nvmlGpmQueryDeviceSupport,                                                \
      (nvmlDevice_t device, nvmlGpmSupport_t *gpmSupport))                                         \
    X(520, nvmlReturn_t, nvmlGpmSampleAlloc, (nvmlGpmSample_t *gpmSample))                         \
    X(520, nvmlReturn_t, nvmlGpmSampleFree, (nvmlGpmSample_t gpmSample))                           \
    X(520, nvmlReturn_t, nvmlGpmSampleGet, (nvmlDevice_t device, nvmlGpmSample_t gpmSample))       \
    X(525, nvmlReturn_t, nvmlGpmMigSampleGet,                                                      \
      (nvmlDevice_t device, unsigned int gpuInstanceId, nvmlGpmSample_t gpmSample))                \
    X(520, nvmlReturn_t, nvmlGpmMetricsGet, (nvmlGpmMetricsGet_t *metricsGet))                     \
    X(440, nvmlReturn_t, nvmlEventSetCreate, (nvmlEventSet_t *set))                                \
    X(440, nvmlReturn_t, nvmlDeviceGetSupportedEventTypes,                                         \
      (nvmlDevice_t device, unsigned long long *eventTypes))                                       \
    X(440, nvmlReturn_t, nvmlDeviceRegisterEvents,                                                 \
      (nvmlDevice_t device, unsigned long long eventTypes, nvmlEventSet_t set))                    \
    X(440, nvmlReturn_t, nvmlEventSetWait,                                                         \
      (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms))                         \
    X(440, nvmlReturn_t, nvmlEventSetWait_v2,                                                      \
      (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeoutms))                         \
    X(440, nvmlReturn_t, nvmlEventSetFree, (nvmlEventSet_t set))                                   \
    X(440, nvmlReturn_t, nvmlDeviceSetPersistenceMode,                                             \
      (nvmlDevice_t device, nvmlEnableState_t mode))                                               \
    X(440, nvmlReturn_t, nvmlDeviceSetComputeMode, (nvmlDevice_t device, nvmlComputeMode_t mode))  \
    X(440, nvmlReturn_t, nvmlDeviceSetPowerManagementLimit,                                        \
      (nvmlDevice_t device, unsigned int limit))                                                   \
    X(535, nvmlReturn_t, nvmlDeviceSetPowerManagementLimit_v2,                                     \
      (nvmlDevice_t device, nvmlPowerValue_v2_t *powerValue))                                      \
    X(440, nvmlReturn_t, nvmlDeviceSetApplicationsClocks,                                          \
      (nvmlDevice_t device, unsigned int memClockMHz, unsigned int graphicsClockMHz))              \
    X(440, nvmlReturn_t, nvmlDeviceResetApplicationsClocks, (nvmlDevice_t device))                 \
    X(440, nvmlReturn_t, nvmlDeviceSetGpuLockedClocks,                                             \
      (nvmlDevice_t device, unsigned int minGpuClockMHz, unsigned int maxGpuClockMHz))             \
    X(440, nvmlReturn_t, nvmlDeviceResetGpuLockedClocks, (nvmlDevice_t device))                    \
    X(465, nvmlReturn_t, nvmlDeviceSetMemoryLockedClocks,                                          \
      (nvmlDevice_t device, unsigned int minMemClockMHz, unsigned int maxMemClockMHz))             \
    X(465, nvmlReturn_t, nvmlDeviceResetMemoryLockedClocks, (nvmlDevice_t device))                 \
    X(555, nvmlReturn_t, nvmlDeviceSetClockOffsets,                                                \
      (nvmlDevice_t device, nvmlClockOffset_t *info))                                              \
    X(515, nvmlReturn_t, nvmlDeviceSetGpcClkVfOffset, (nvmlDevice_t device, int offset))           \
    X(520, nvmlReturn_t, nvmlDeviceSetMemClkVfOffset, (nvmlDevice_t device, int offset))           \
    X(515, nvmlReturn_t, nvmlDeviceSetFanSpeed_v2,                                                 \
      (nvmlDevice_t device, unsigned int fan, unsigned int speed))                                 \
    X(515, nvmlReturn_t, nvmlDeviceSetDefaultFanSpeed_v2, (nvmlDevice_t device, unsigned int fan)) \
    X(440, nvmlReturn_t, nvmlDeviceSetEccMode, (nvmlDevice_t device, nvmlEnableState_t ecc))       \
    X(440, nvmlReturn_t, nvmlDeviceClearEccErrorCounts,                                            \
      (nvmlDevice_t device, nvmlEccCounterType_t counterType))                                     \
    X(440, nvmlReturn_t, nvmlDeviceSetAccountingMode,                                              \
      (nvmlDevice_t device, nvmlEnableState_t mode))                                               \
    X(440, nvmlReturn_t, nvmlDeviceClearAccountingPids, (nvmlDevice_t device))                     \
    X(440, nvmlReturn_t, nvmlDeviceSetGpuOperationMode,                                            \
      (nvmlDevice_t device, nvmlGpuOperationMode_t mode))                                          \
    X(440, nvmlReturn_t, nvmlDeviceSetVirtualizationMode,                                          \
      (nvmlDevice_t device, nvmlGpuVirtualizationMode_t virtualMode))                              \
    X(440, nvmlReturn_t, nvmlDeviceSetDefaultAutoBoostedClocksEnabled,                             \
      (nvmlDevice_t device, nvmlEnableState_t enabled, unsigned int flags))                        \
    X(440, nvmlReturn_t, nvmlDeviceSetAPIRestriction,                                              \
      (nvmlDevice_t device, nvmlRestrictedAPI_t apiType, nvmlEnableState_t isRestricted))          \
    X(460, nvmlReturn_t, nvmlDeviceSetTemperatureThreshold,                                        \
      (nvmlDevice_t device, nvmlTemperatureThresholds_t type, int *celsius))                       \
    X(570, nvmlReturn_t, nvmlDeviceSetDramEncryptionMode,                                          \
      (nvmlDevice_t device, const nvmlDramEncryptionInfo_t *dramEncryption))                       \
    X(590, nvmlReturn_t, nvmlDeviceSetHostname_v1,                                                 \
      (nvmlDevice_t device, nvmlHostname_v1_t *hostname))                                          \
    X(440, nvmlReturn_t, nvmlDeviceResetNvLinkErrorCounters,                                       \
      (nvmlDevice_t device, unsigned int link))                                                    \
    X(440, nvmlReturn_t, nvmlDeviceSetMigMode,                                                     \
      (nvmlDevice_t device, unsigned int mode, nvmlReturn_t *activationStatus))                    \
    X(440, nvmlReturn_t, nvmlDeviceCreateGpuInstance,                                              \
      (nvmlDevice_t device, unsigned int profileId, nvmlGpuInstance_t *gpuInstance))               \
    X(460, nvmlReturn_t, nvmlDeviceCreateGpuInstanceWithPlacement,                                 \
      (nvmlDevice_t device, unsigned int profileId, const nvmlGpuInstancePlacement_t *placement,   \
       nvmlGpuInstance_t *gpuInstance))                                                            \
    X(440, nvmlReturn_t, nvmlGpuInstanceDestroy, (nvmlGpuInstance_t gpuInstance))                  \
    X(440, nvmlReturn_t, nvmlGpuInstanceCreateComputeInstance,                                     \
      (nvmlGpuInstance_t gpuInstance, unsigned int profileId,                                      \
       nvmlComputeInstance_t *computeInstance))                                                    \
    X(440, nvmlReturn_t, nvmlComputeInstanceDestroy, (nvmlComputeInstance_t computeInstance))

#endif
