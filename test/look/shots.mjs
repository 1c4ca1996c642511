// The pictures of the documentation.
import {mkdirSync} from 'node:fs'
import {join} from 'node:path'

const desktop = {viewport: {width: 1280, height: 860}}
// Each is of a page, of a part of it, or of the figures with these titles in it. Of a page it is what a reader sees first.
const shots = [
  {name: 'report-light', page: 'real', options: desktop},
  {name: 'report-phone', page: 'real', options: {viewport: {width: 390, height: 844}, colorScheme: 'dark'}},
  {name: 'report-numbers', page: 'real', options: desktop, part: '#numbers .pictures'},
  {name: 'report-comparison', page: 'compare', options: desktop, figures: ['no-worse: change with its interval', 'no-worse: the runs']},
  {name: 'report-heat', page: 'everything', options: desktop, figures: [/^read: readBytesPerSecond by/]},
  {name: 'report-sweep', page: 'everything', options: desktop, figures: [/^read: readBytesPerSecond over/, /^read: readLatencyP99Nanoseconds over/]},
  {name: 'report-dark', page: 'compare', options: {...desktop, colorScheme: 'dark'}, figures: ['read latency: read', 'write latency: read, redo']},
  {name: 'report-time', page: 'compare', options: desktop, figures: ['read: throughput over time', 'read: the slowest operations over time']},
  {name: 'report-rounds', page: 'compare', options: desktop, figures: ['tx: mean latency over time', 'Regions of a scan: scan']},
  {name: 'report-disks', page: 'compare', options: {...desktop, colorScheme: 'dark'}, figures: [/^Sizes of disk reads/, /^Sizes of disk writes/, /^Free space along/]},
]

// take makes them. What is not there is an error: a picture that was left out would stay as it was.
export async function take(browser, open, pages, folder, only = []) {
  mkdirSync(folder, {recursive: true})
  for (const shot of shots.filter(one => only.length === 0 || only.includes(one.name))) {
    const {page, close} = await open(browser, join(pages, `${shot.page}.html`), {...shot.options, deviceScaleFactor: 1.5})
    await page.screenshot({path: join(folder, `${shot.name}.png`), ...await frame(page, shot)})
    console.log(`   ${join(folder, shot.name)}.png`)
    await close()
  }
}

async function frame(page, shot) {
  if (shot.part) return {fullPage: true, clip: await clipOf([page.locator(shot.part)])}
  if (shot.figures) {
    const all = shot.figures.map(title => page.locator('figure', {has: page.locator('figcaption').getByText(title, {exact: true})}).first())
    return {fullPage: true, clip: await clipOf(all)}
  }
  return {}
}

// clipOf is the part of the page in which all of them are.
async function clipOf(all) {
  const boxes = []
  for (const one of all) {
    const box = await one.boundingBox()
    if (!box) throw new Error(`${one} is not there`)
    boxes.push(box)
  }
  const left = Math.min(...boxes.map(one => one.x)), top = Math.min(...boxes.map(one => one.y))
  return {x: Math.max(0, left - 8), y: Math.max(0, top - 8), width: Math.max(...boxes.map(one => one.x + one.width)) - left + 16,
    height: Math.max(...boxes.map(one => one.y + one.height)) - top + 16}
}
