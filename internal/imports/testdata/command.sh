#!/bin/sh
# as in a blog
sudo fio --filename=/mnt/test/file --direct=1 --size 2G --ioengine=libaio \
  --runtime=60 --time_based --group_reporting --output-format=json --output=result.json \
  --name=random-read --rw=randread --bs=4k --iodepth=64 --numjobs=4 \
  --name="log writes" --stonewall --rw=write --bs=64k --fdatasync=1 2>&1 | tee log
