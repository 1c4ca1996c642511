// look.mjs PAGES OUT [PICTURES]: opens each page of the folder PAGES in a browser, as a phone, a tablet and a desktop show it, light, dark and
// printed. It fails if something overlaps, is cut off or leaves the page, if the keyboard does not reach something, or if axe finds a problem
// that is serious or critical. OUT gets pictures of the pages; PICTURES, if given, those of the documentation.
import {createRequire} from 'node:module'
import {mkdirSync, readdirSync, readFileSync} from 'node:fs'
import {basename, join, resolve} from 'node:path'
import {pathToFileURL} from 'node:url'
import {contrast, focused, inspect} from './inspect.mjs'
import {take} from './shots.mjs'

const require = createRequire(join(resolve(process.env.LOOK_MODULES), 'package.json'))
const {chromium} = require('playwright-core')
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const [pages, out, pictures] = process.argv.slice(2)
const widths = {phone: 390, tablet: 820, desktop: 1280}
const themes = ['light', 'dark']
// On a busy machine a browser needs time.
const patience = 300_000
// What cannot be shown whole is cut off: that is what the pages with hostile names are for.
const mayCut = ['hostile']

let failures = 0
const fail = (where, words) => { failures++; console.log(`   WRONG ${where}: ${words}`) }

async function open(browser, file, options) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, ...options})
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  const asked = []
  page.on('request', one => { if (one.url() !== pathToFileURL(file).href) asked.push(one.url()) })
  page.on('console', one => asked.push(one.text()))
  page.on('dialog', one => { asked.push(`a dialog: ${one.message()}`); one.dismiss() })
  await page.goto(pathToFileURL(file).href)
  return {page, asked, close: () => context.close()}
}

// openAll opens what a reader can open.
const openAll = () => { for (const one of document.querySelectorAll('details')) one.open = true }

// layout looks at each width, in both themes: where things are does not depend on the theme, their colours do.
async function layout(browser, file, name) {
  for (const [device, width] of Object.entries(widths)) {
    const {page, asked, close} = await open(browser, file, {viewport: {width, height: 900}})
    await page.evaluate(openAll)
    const found = await page.evaluate(inspect, width)
    const where = `${name}, ${device}`
    for (const problem of found.problems.slice(0, 20)) fail(where, problem)
    if (found.problems.length > 20) fail(where, `and ${found.problems.length - 20} more`)
    if (!mayCut.includes(name)) for (const note of found.notes) fail(where, note)
    console.log(`   ${where}: ${found.boxes} texts, ${found.least < Infinity ? `those of pictures at least ${found.least.toFixed(1)} pixels high` : "no picture"}`)
    for (const theme of themes) {
      await page.emulateMedia({colorScheme: theme})
      await colours(page, `${where}, ${theme}`)
      await page.screenshot({path: join(out, `${name}-${device}-${theme}.png`), fullPage: true})
        .catch(error => console.log(`   no picture of ${where}: ${error.message}`)) // a page can be too long for one
    }
    if (asked.length > 0) fail(where, `the page asked for something: ${asked.slice(0, 3)}`)
    await close()
  }
}

// colours asks axe, and looks at the words in pictures, which axe does not judge.
async function colours(page, where) {
  const read = await page.evaluate(contrast)
  for (const problem of read.problems.slice(0, 10)) fail(where, problem)
  await page.evaluate(axe)
  const found = await page.evaluate(() => axe.run(document, {resultTypes: ['violations']}))
  for (const one of found.violations) {
    const words = `${one.id} (${one.impact}): ${one.help}, ${one.nodes.length} times, first ${one.nodes[0].html.slice(0, 120)}`
    if (one.impact === 'serious' || one.impact === 'critical') fail(where, words)
    else console.log(`   ${where}: ${words}`)
  }
  console.log(`   ${where}: axe has ${found.violations.length} findings, ${found.passes.length} rules hold; the contrast of ${read.looked} words in pictures`)
}

async function print(browser, file, name) {
  const {page, close} = await open(browser, file, {viewport: {width: 718, height: 1000}}) // A4 with usual margins
  await page.emulateMedia({media: 'print'})
  await page.evaluate(openAll)
  for (const problem of (await page.evaluate(inspect, 718)).problems.slice(0, 10)) fail(`${name}, printed`, problem)
  await close()
}

async function keyboard(browser, file, name) {
  for (const theme of themes) {
    const {page, close} = await open(browser, file, {colorScheme: theme})
    const where = `${name}, keyboard, ${theme}`
    const wanted = await page.evaluate(() => [...document.querySelectorAll('a[href], summary, [tabindex="0"]')]
      .map((one, at) => one.checkVisibility() ? at : -1).filter(at => at >= 0))
    const reached = new Set()
    for (let i = 0; i < wanted.length; i++) {
      await page.keyboard.press('Tab')
      const at = await page.evaluate(focused)
      if (!at) break
      reached.add(at.at)
      if (!at.outline) fail(where, `the focus of ${at.words} cannot be seen`)
      if (!at.seen) fail(where, `${at.words} has the focus, and is not on the screen`)
    }
    const missed = wanted.filter(at => !reached.has(at))
    if (missed.length > 0) fail(where, `${missed.length} of ${wanted.length} things are not reached`)
    if (await page.locator('summary').count() > 0) {
      await page.locator('summary').first().focus()
      await page.keyboard.press('Enter')
      if (!await page.locator('details').first().evaluate(one => one.open)) fail(where, 'Enter does not open what can be opened')
    }
    console.log(`   ${where}: ${reached.size} of ${wanted.length} things are reached`)
    await close()
  }
}

// canFail makes a page with all that should be found, and fails if it is not: checks that find nothing could be checks of nothing.
async function canFail(browser) {
  const context = await browser.newContext({viewport: {width: 390, height: 900}})
  const page = await context.newPage()
  await page.setContent(`<main><p style="width:500px">too wide</p><p style="margin:0;height:0">one text</p><p style="margin:0">over another</p>
    <a href="#x" style="outline:none">no focus</a><img src="data:,"><svg viewBox="0 0 420 50" width="200"><title>T</title>
    <rect width="100%" height="100%" fill="#ffffff"/><text x="10" y="20" font-size="12" fill="#dddddd">pale</text>
    <text x="15" y="22" font-size="12">over it</text><text x="400" y="40" font-size="12">outside…</text></svg></main>`)
  const found = await page.evaluate(inspect, 390)
  const pale = await page.evaluate(contrast)
  await page.keyboard.press('Tab')
  const focus = await page.evaluate(focused)
  await page.evaluate(axe)
  const rules = (await page.evaluate(() => axe.run(document))).violations.map(one => one.id)
  const all = found.problems.join('\n')
  for (const [what, is] of Object.entries({'a wide page': /the page is 5\d\d pixels wide/.test(all), 'overlapping texts': /"one text" and "over another" overlap/.test(all),
    'overlapping words in a picture': /"pale" and "over it" overlap/.test(all), 'words outside a picture': /"outside…" leaves the picture/.test(all),
    'small words': /pixels high/.test(all), 'cut words': found.notes.length === 1, 'pale words': pale.problems.length === 1,
    'a focus that cannot be seen': focus && !focus.outline, 'an image without words': rules.includes('image-alt')})) {
    if (!is) fail('the checks', `${what} is not found: ${all}`)
  }
  await context.close()
}

mkdirSync(out, {recursive: true})
const sandbox = process.getuid() === 0 ? ['--no-sandbox'] : [] // the sandbox refuses root
const browser = await chromium.launch({executablePath: process.env.LOOK_BROWSER, args: [...sandbox, '--disable-gpu', '--disable-dev-shm-usage'],
  timeout: patience})
console.log(`>> ${await browser.version()}, axe ${require('axe-core/package.json').version}`)
await canFail(browser)
const files = readdirSync(pages).filter(one => one.endsWith('.html') && (!process.env.LOOK_ONLY || one.startsWith(process.env.LOOK_ONLY))).sort()
for (const file of files) {
  const name = basename(file, '.html'), path = join(pages, file)
  console.log(`>> ${name}`)
  for (const look of [layout, print, keyboard]) await look(browser, path, name)
}
if (pictures) await take(browser, open, pages, pictures)
await browser.close()
if (files.length < 5 && !process.env.LOOK_ONLY) fail('all', `only ${files.length} pages`)
console.log(failures > 0 ? `>> FAILED: ${failures} things are wrong` : `>> all is well; pictures of the pages are in ${out}`)
process.exit(failures > 0 ? 1 : 0)
