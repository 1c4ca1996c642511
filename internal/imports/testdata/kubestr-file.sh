kubestr fio --storageclass=fast-csi --fiofile job.fio
