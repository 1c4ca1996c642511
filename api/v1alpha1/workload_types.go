package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Workload is the workload of a measure phase: exactly one member is set.
//
// +kubebuilder:validation:ExactlyOneOf=oltp;scan;redo;metadata;postgres;fio
type Workload struct {
	// oltp runs random reads and updates with many workers.
	// +optional
	OLTP *OLTPWorkload `json:"oltp,omitempty"`
	// scan reads all data in order.
	// +optional
	Scan *ScanWorkload `json:"scan,omitempty"`
	// redo runs small synchronous appends, like a write-ahead log.
	// +optional
	Redo *RedoWorkload `json:"redo,omitempty"`
	// metadata replaces many small files one after another, looks each up and lists the folders.
	// +optional
	Metadata *MetadataWorkload `json:"metadata,omitempty"`
	// postgres runs PostgreSQL with pgbench.
	// +optional
	Postgres *PostgresWorkload `json:"postgres,omitempty"`
	// fio runs a custom fio job file.
	// +optional
	FIO *FIOWorkload `json:"fio,omitempty"`
}

// NamedWorkload is one of several workloads that run together: exactly one of oltp, scan and redo is set. Other workloads do not run for a
// fixed time and need a phase of their own.
//
// +kubebuilder:validation:ExactlyOneOf=oltp;scan;redo
type NamedWorkload struct {
	// name is the name of the workload in metrics: PHASE.NAME.METRIC.
	// +required
	Name VolumeName `json:"name"`
	// volume is the volume that it works on. Defaults to that of the phase.
	// +optional
	Volume VolumeName `json:"volume,omitempty"`
	// oltp runs random reads and updates with many workers.
	// +optional
	OLTP *OLTPWorkload `json:"oltp,omitempty"`
	// scan reads all data in one stream, over and over.
	// +optional
	Scan *RepeatedScan `json:"scan,omitempty"`
	// redo runs small synchronous appends, like a write-ahead log.
	// +optional
	Redo *RedoWorkload `json:"redo,omitempty"`
}

// RepeatedScan reads all data in one stream until the workloads beside it end.
type RepeatedScan struct {
	// blockSize is the size of the reads. Defaults to 128Ki.
	// +optional
	// +default="128Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
}

// OLTPWorkload runs random reads and updates. An update is a read and a write: U percent updates make U writes per 100 reads.
type OLTPWorkload struct {
	// workers is the number of workers. Each has one request in flight. Defaults to 8.
	// +optional
	// +default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Workers int32 `json:"workers,omitempty"`
	// updatePercent is the percentage of updates among reads and updates. An update reads and writes: 100 makes as many writes as reads.
	// Defaults to 0.
	// +optional
	// +default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UpdatePercent int32 `json:"updatePercent"`
	// blockSize is the size of the requests. Defaults to 8Ki.
	// +optional
	// +default="8Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// duration is the length of the measurement. Defaults to 5m.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
	// rampUp is the time before the measurement that is not counted.
	// +optional
	RampUp *Duration `json:"rampUp,omitempty"`
	// thinkTime is the pause between the requests of a worker.
	// +optional
	ThinkTime *Duration `json:"thinkTime,omitempty"`
	// layout is SharedFile (each worker uses all data) or FilePerWorker. Defaults to SharedFile.
	// +optional
	// +default="SharedFile"
	// +kubebuilder:validation:Enum=SharedFile;FilePerWorker
	Layout string `json:"layout,omitempty"`
}

// ScanWorkload reads regions one after another, in one stream or several at the same time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.randomRegions) || self.randomRegions <= self.regions",message="choose at most as many randomRegions as there are regions"
// +kubebuilder:validation:XValidation:rule="!has(self.streams) || self.streams <= (has(self.randomRegions) ? self.randomRegions : self.regions)",message="write at least as many regions, or randomRegions, as streams; better 16 times as many: a stream reads one region after another"
type ScanWorkload struct {
	// blockSize is the size of the reads. Defaults to 128Ki.
	// +optional
	// +default="128Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// regions is the number of regions that the data is divided into. Each is timed. Defaults to 8.
	// +optional
	// +default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Regions int32 `json:"regions,omitempty"`
	// randomRegions is the number of regions to read, chosen at random with a recorded seed. Defaults to all.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	RandomRegions *int32 `json:"randomRegions,omitempty"`
	// streams is the number of concurrent streams. Each takes the next region that no other has taken. Defaults to 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Streams *int32 `json:"streams,omitempty"`
}

// RedoWorkload runs small synchronous appends.
type RedoWorkload struct {
	// writers is the number of concurrent writers, each with its own file or region. Defaults to 6.
	// +optional
	// +default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Writers int32 `json:"writers,omitempty"`
	// blockSizes are the block sizes and their shares. Defaults to 8Ki for all appends.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.map(b, b.percent).sum() == 100",message="make the percents of blockSizes add up to 100"
	// +kubebuilder:validation:XValidation:rule="self.all(b, self.exists_one(c, c.size == b.size))",message="name each size of blockSizes once"
	BlockSizes []BlockSizeShare `json:"blockSizes,omitempty"`
	// sync says how an append is made durable: dsync (with the write) or fdatasync (after it). Defaults to dsync.
	// +optional
	// +default="dsync"
	// +kubebuilder:validation:Enum=dsync;fdatasync
	Sync string `json:"sync,omitempty"`
	// duration is the length of the measurement. Defaults to 5m.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
	// archive copies each full segment of the logs while the appends continue. It counts as another workload, named archive, or NAME-archive
	// for one workload NAME of several.
	// +optional
	Archive *RedoArchive `json:"archive,omitempty"`
}

// RedoArchive is the archiver of a log.
type RedoArchive struct {
	// volume is the volume to copy the segments to. Defaults to that of the logs.
	// +optional
	Volume VolumeName `json:"volume,omitempty"`
}

// BlockSizeShare is a block size and its share of the operations.
type BlockSizeShare struct {
	// size is the block size.
	// +required
	Size BlockSize `json:"size"`
	// percent is the percentage of operations with this size.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`
}

// MetadataWorkload creates many small files before the measurement. Then each worker cycles through its files: it removes a file, creates
// it again with new content and looks it up, and it lists each folder after the last file in it. All files are removed at the end.
type MetadataWorkload struct {
	// workers is the number of workers, each with folders of its own.
	// +optional
	// +default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Workers int32 `json:"workers,omitempty"`
	// filesPerWorker is how many files each worker has, 100 to a folder. They are created before the measurement.
	// +optional
	// +default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	FilesPerWorker int32 `json:"filesPerWorker,omitempty"`
	// fileSize is the size of each file.
	// +optional
	// +default="4Ki"
	FileSize *BlockSize `json:"fileSize,omitempty"`
	// sync is None, or File to make each file that the measurement creates durable with fsync before it is closed.
	// +optional
	// +default="None"
	// +kubebuilder:validation:Enum=None;File
	Sync string `json:"sync,omitempty"`
	// duration is the length of the measurement.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
}

// PostgresWorkload runs PostgreSQL on the volume with pgbench as its client.
//
// +kubebuilder:validation:XValidation:rule="(self.mode == 'Script') == has(self.script)",message="set script if mode is Script, and only then; TPCBLike and SelectOnly are built in"
type PostgresWorkload struct {
	// mode is TPCBLike, SelectOnly or Script. Defaults to TPCBLike.
	// +optional
	// +default="TPCBLike"
	// +kubebuilder:validation:Enum=TPCBLike;SelectOnly;Script
	Mode string `json:"mode,omitempty"`
	// script refers to a pgbench script in a ConfigMap in the same namespace.
	// +optional
	Script *ConfigMapKey `json:"script,omitempty"`
	// databaseSize is the size of the database, rounded up to a whole pgbench scale (about 15Mi each). Defaults to 1Gi.
	// +optional
	// +default="1Gi"
	DatabaseSize *Size `json:"databaseSize,omitempty"`
	// keep uses the database of an earlier postgres phase of the run, so that it ages, instead of a new one.
	// +optional
	Keep bool `json:"keep,omitempty"`
	// walVolume is the volume of the write-ahead log. Its counters have names such as PHASE.wal.METRIC. Only for zfs targets. Defaults to
	// the volume of the phase.
	// +optional
	WALVolume VolumeName `json:"walVolume,omitempty"`
	// clients is the number of pgbench clients. Defaults to 8.
	// +optional
	// +default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	Clients int32 `json:"clients,omitempty"`
	// duration is the length of the measurement. Defaults to 5m.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
	// rampUp is the time before the measurement that is not counted. Defaults to 1m.
	// +optional
	// +default="1m"
	RampUp *Duration `json:"rampUp,omitempty"`
	// dataChecksums enables data checksums in the database cluster. Defaults to true.
	// +optional
	// +default=true
	DataChecksums *bool `json:"dataChecksums,omitempty"`
	// settings are postgresql.conf settings that affect I/O. checkpoint_timeout defaults to a fifth of the duration, between 30s and 5m.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['shared_buffers','wal_level','wal_buffers','wal_compression','wal_sync_method','wal_init_zero','wal_recycle','min_wal_size','max_wal_size','checkpoint_timeout','checkpoint_completion_target','full_page_writes','synchronous_commit','commit_delay','effective_io_concurrency','random_page_cost'])",message="set only settings that affect I/O: shared_buffers, wal_level, wal_buffers, wal_compression, wal_sync_method, wal_init_zero, wal_recycle, min_wal_size, max_wal_size, checkpoint_timeout, checkpoint_completion_target, full_page_writes, synchronous_commit, commit_delay, effective_io_concurrency, random_page_cost"
	Settings map[string]PropertyValue `json:"settings,omitempty"`
}

// FIOWorkload is a custom fio job file: exactly one of jobFile and jobFileFrom is set.
//
// +kubebuilder:validation:ExactlyOneOf=jobFile;jobFileFrom
type FIOWorkload struct {
	// jobFile is the text of the job file.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self.contains('[')",message="a fio job file has at least one section in brackets, such as [job1]"
	JobFile string `json:"jobFile,omitempty"`
	// jobFileFrom refers to a ConfigMap in the same namespace that holds the job file.
	// +optional
	JobFileFrom *ConfigMapKey `json:"jobFileFrom,omitempty"`
}

// ConfigMapKey is a key of a ConfigMap in the same namespace.
type ConfigMapKey struct {
	// name is the name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a ConfigMap in the same namespace"
	Name string `json:"name"`
	// key is the key within the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="write a key of the ConfigMap in letters, digits, '-', '_' and '.', such as job.fio"
	Key string `json:"key"`
}

// PodTemplate holds the parts of the workload pods that a cluster may require. The operator sets everything related to security
// (user, privileges, file system).
type PodTemplate struct {
	// labels are added to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=12
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('storagebench.dev/') && !k.startsWith('batch.kubernetes.io/') && !k.startsWith('app.kubernetes.io/'))",message="choose other label keys: storagebench.dev/, batch.kubernetes.io/ and app.kubernetes.io/ are set by controllers"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="write each key as NAME or PREFIX/NAME, with a name of at most 63 letters, digits, '-', '_' and '.', such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 63)",message="write each value in at most 63 characters"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !self[k].matches(r'[^\w.-]'))`,message="write each value in letters, digits, '-', '_' and '.' only"
	Labels map[string]string `json:"labels,omitempty"`
	// annotations are added to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="write each key as NAME or PREFIX/NAME, with a name of at most 63 letters, digits, '-', '_' and '.', such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 4096)",message="write each value in at most 4,096 characters"
	Annotations map[string]string `json:"annotations,omitempty"`
	// resources are the resources of the workload container. Limits throttle the workload: set them only to measure that.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// nodeSelector restricts the nodes to choose from.
	// +optional
	// +kubebuilder:validation:MaxProperties=12
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="write each key as NAME or PREFIX/NAME, with a name of at most 63 letters, digits, '-', '_' and '.', such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 63)",message="write each value in at most 63 characters"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !self[k].matches(r'[^\w.-]'))`,message="write each value in letters, digits, '-', '_' and '.' only"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations are added to the pods and considered when a node is chosen.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator in ['Exists', 'Equal', 'Lt', 'Gt'])",message="write operator: Exists or Equal"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || t.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="write effect: NoSchedule, PreferNoSchedule or NoExecute"
	// +kubebuilder:validation:XValidation:rule="self.all(t, (!has(t.key) || t.key.size() <= 317) && (!has(t.value) || t.value.size() <= 63))",message="write the key and the value of a taint: a node has none that are longer than 317 and 63 characters"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// priorityClassName is the priority class of the pods. A class that is not preempted protects long runs.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a PriorityClass as 'kubectl get priorityclass' shows it"
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// imagePullSecrets are the pull secrets for the runner image.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// runAsUser is the user ID of the pods, for clusters that require a range. Never root. Defaults to 65532.
	// +optional
	// +default=65532
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}
