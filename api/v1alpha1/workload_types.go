package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
)

// Workload is the load of a measure phase: exactly one member is set.
//
// +kubebuilder:validation:ExactlyOneOf=oltp;scan;redo;metadata;postgres;fio
type Workload struct {
	// oltp is random reads and updates of many workers.
	// +optional
	OLTP *OLTPWorkload `json:"oltp,omitempty"`
	// scan reads everything in one stream.
	// +optional
	Scan *ScanWorkload `json:"scan,omitempty"`
	// redo is small synchronous appends, as a write-ahead log makes them.
	// +optional
	Redo *RedoWorkload `json:"redo,omitempty"`
	// metadata creates, looks up, lists and removes many small files.
	// +optional
	Metadata *MetadataWorkload `json:"metadata,omitempty"`
	// postgres is a real PostgreSQL under pgbench.
	// +optional
	Postgres *PostgresWorkload `json:"postgres,omitempty"`
	// fio is a job file of your own.
	// +optional
	FIO *FIOWorkload `json:"fio,omitempty"`
}

// OLTPWorkload is random reads and updates. An update reads its block before writing it: with U percent updates there are
// 100 reads to U writes.
type OLTPWorkload struct {
	// workers, each with a region of its own and one request at a time.
	// +optional
	// +default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Workers int32 `json:"workers,omitempty"`
	// updatePercent of the operations.
	// +optional
	// +default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	UpdatePercent int32 `json:"updatePercent"`
	// blockSize of the requests.
	// +optional
	// +default="8Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// duration of the measurement.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
	// rampUp before the measurement, not counted.
	// +optional
	RampUp *Duration `json:"rampUp,omitempty"`
	// thinkTime between the requests of a worker.
	// +optional
	ThinkTime *Duration `json:"thinkTime,omitempty"`
	// layout is SharedFile (regions of one file) or FilePerWorker.
	// +optional
	// +default="SharedFile"
	// +kubebuilder:validation:Enum=SharedFile;FilePerWorker
	Layout string `json:"layout,omitempty"`
}

// ScanWorkload reads regions one after another in one stream.
//
// +kubebuilder:validation:XValidation:rule="!has(self.randomRegions) || self.randomRegions <= self.regions",message="choose at most as many randomRegions as there are regions"
type ScanWorkload struct {
	// blockSize of the reads.
	// +optional
	// +default="128Ki"
	BlockSize *BlockSize `json:"blockSize,omitempty"`
	// regions into which the data is divided; each is timed.
	// +optional
	// +default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	Regions int32 `json:"regions,omitempty"`
	// randomRegions reads only so many regions, chosen at random with a recorded seed.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	RandomRegions *int32 `json:"randomRegions,omitempty"`
}

// RedoWorkload is small synchronous appends.
type RedoWorkload struct {
	// writers that append at the same time, each to a file or region of its own.
	// +optional
	// +default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Writers int32 `json:"writers,omitempty"`
	// blockSizes and their shares; left out, all appends are of 8Ki.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self.map(b, b.percent).sum() == 100",message="make the percents of blockSizes add up to 100"
	// +kubebuilder:validation:XValidation:rule="self.all(b, self.exists_one(c, c.size == b.size))",message="name each size of blockSizes once"
	BlockSizes []BlockSizeShare `json:"blockSizes,omitempty"`
	// sync is how an append is made durable: dsync (with the write) or fdatasync (after it).
	// +optional
	// +default="dsync"
	// +kubebuilder:validation:Enum=dsync;fdatasync
	Sync string `json:"sync,omitempty"`
	// duration of the measurement.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
}

// BlockSizeShare is a block size with its share of the operations.
type BlockSizeShare struct {
	// size of the block.
	// +required
	Size BlockSize `json:"size"`
	// percent of the operations that have this size.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int32 `json:"percent"`
}

// MetadataWorkload creates many small files, looks each up, lists the folders and removes all of them, again and again.
type MetadataWorkload struct {
	// workers that do this at the same time, each in folders of its own.
	// +optional
	// +default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Workers int32 `json:"workers,omitempty"`
	// filesPerWorker is how many files a worker creates before it removes them, 100 to a folder.
	// +optional
	// +default=1000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	FilesPerWorker int32 `json:"filesPerWorker,omitempty"`
	// fileSize of each file.
	// +optional
	// +default="4Ki"
	FileSize *BlockSize `json:"fileSize,omitempty"`
	// sync is None, or File to make each file durable with fsync before it is closed.
	// +optional
	// +default="None"
	// +kubebuilder:validation:Enum=None;File
	Sync string `json:"sync,omitempty"`
	// duration of the measurement.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
}

// PostgresWorkload starts a PostgreSQL on the volume and drives it with pgbench.
//
// +kubebuilder:validation:XValidation:rule="(self.mode == 'Script') == has(self.script)",message="give script exactly when mode is Script; the modes TPCBLike and SelectOnly bring their own"
type PostgresWorkload struct {
	// mode is TPCBLike, SelectOnly or Script.
	// +optional
	// +default="TPCBLike"
	// +kubebuilder:validation:Enum=TPCBLike;SelectOnly;Script
	Mode string `json:"mode,omitempty"`
	// script is a pgbench script in a ConfigMap of the same namespace.
	// +optional
	Script *ConfigMapKey `json:"script,omitempty"`
	// databaseSize to initialise, rounded up to a whole pgbench scale (about 15Mi each).
	// +optional
	// +default="1Gi"
	DatabaseSize *Size `json:"databaseSize,omitempty"`
	// clients of pgbench.
	// +optional
	// +default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	Clients int32 `json:"clients,omitempty"`
	// duration of the measurement.
	// +optional
	// +default="5m"
	Duration *Duration `json:"duration,omitempty"`
	// rampUp before the measurement, not counted.
	// +optional
	RampUp *Duration `json:"rampUp,omitempty"`
	// dataChecksums of the cluster.
	// +optional
	// +default=true
	DataChecksums *bool `json:"dataChecksums,omitempty"`
	// settings of postgresql.conf that shape its I/O.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['shared_buffers','wal_level','wal_buffers','wal_compression','wal_sync_method','wal_init_zero','wal_recycle','min_wal_size','max_wal_size','checkpoint_timeout','checkpoint_completion_target','full_page_writes','synchronous_commit','commit_delay','effective_io_concurrency','random_page_cost'])",message="set only what shapes the I/O: shared_buffers, wal_level, wal_buffers, wal_compression, wal_sync_method, wal_init_zero, wal_recycle, min_wal_size, max_wal_size, checkpoint_timeout, checkpoint_completion_target, full_page_writes, synchronous_commit, commit_delay, effective_io_concurrency, random_page_cost"
	Settings map[string]PropertyValue `json:"settings,omitempty"`
}

// FIOWorkload is a job file of the user's own: exactly one of jobFile and jobFileFrom is set.
//
// +kubebuilder:validation:ExactlyOneOf=jobFile;jobFileFrom
type FIOWorkload struct {
	// jobFile is the text of the job file.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="self.contains('[')",message="a fio job file has at least one section in brackets, such as [job1]"
	JobFile string `json:"jobFile,omitempty"`
	// jobFileFrom names a ConfigMap of the same namespace that holds it.
	// +optional
	JobFileFrom *ConfigMapKey `json:"jobFileFrom,omitempty"`
}

// ConfigMapKey is a key of a ConfigMap in the same namespace.
type ConfigMapKey struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a ConfigMap of the same namespace"
	Name string `json:"name"`
	// key within it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="write a key of the ConfigMap in letters, digits, '-', '_' and '.', such as job.fio"
	Key string `json:"key"`
}

// PodTemplate are the parts of the workload pods that a cluster may insist on. Everything about safety (user, privileges,
// file system) is fixed by the operator.
type PodTemplate struct {
	// labels added to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=12
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('storagebench.dev/') && !k.startsWith('batch.kubernetes.io/') && !k.startsWith('app.kubernetes.io/'))",message="choose other label keys: storagebench.dev/, batch.kubernetes.io/ and app.kubernetes.io/ are set by controllers"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="write each key as Kubernetes wants it: NAME or PREFIX/NAME, the name of at most 63 letters, digits, '-', '_' and '.', such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 63)",message="write each value in at most 63 characters"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !self[k].matches(r'[^\w.-]'))`,message="write each value in letters, digits, '-', '_' and '.' only"
	Labels map[string]string `json:"labels,omitempty"`
	// annotations added to the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="write each key as Kubernetes wants it: NAME or PREFIX/NAME, the name of at most 63 letters, digits, '-', '_' and '.', such as example.com/team"
	Annotations map[string]string `json:"annotations,omitempty"`
	// resources of the workload container. Limits throttle the workload: set them only to measure that.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// nodeSelector restricts the nodes among which one is chosen.
	// +optional
	// +kubebuilder:validation:MaxProperties=12
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="write each key as Kubernetes wants it: NAME or PREFIX/NAME, the name of at most 63 letters, digits, '-', '_' and '.', such as example.com/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, self[k].size() <= 63)",message="write each value in at most 63 characters"
	// +kubebuilder:validation:XValidation:rule=`self.all(k, !self[k].matches(r'[^\w.-]'))`,message="write each value in letters, digits, '-', '_' and '.' only"
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the pods, also looked at when a node is chosen.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.operator) || t.operator in ['Exists', 'Equal', 'Lt', 'Gt'])",message="write operator: Exists or Equal"
	// +kubebuilder:validation:XValidation:rule="self.all(t, !has(t.effect) || t.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'])",message="write effect: NoSchedule, PreferNoSchedule or NoExecute"
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// priorityClassName of the pods; a class that is not preempted keeps long runs alive.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="write the name of a PriorityClass as 'kubectl get priorityclass' shows it"
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// imagePullSecrets for the runner image.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// runAsUser of the pods, where a cluster prescribes a range. Never root.
	// +optional
	// +default=65532
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}
