// What is wrong with a page that is open in a browser. These functions are executed in the page, so they refer to nothing outside.

// inspect finds what overlaps, what is cut off, what is too small, and what is wider than the page.
export function inspect(width) {
  const problems = [], notes = []
  const short = text => JSON.stringify(text.trim().replace(/\s+/g, ' ').slice(0, 50))
  const root = document.documentElement
  if (root.scrollWidth > root.clientWidth) problems.push(`the page is ${root.scrollWidth} pixels wide, and there is room for ${root.clientWidth}`)

  // The boxes of all texts that can be seen, as far as what scrolls shows them.
  const boxes = []
  const add = (text, svg, rect, clip) => {
    const box = {text, svg, left: rect.left, right: rect.right, top: rect.top, bottom: rect.bottom}
    if (clip) {
      box.left = Math.max(box.left, clip.left); box.right = Math.min(box.right, clip.right)
      box.top = Math.max(box.top, clip.top); box.bottom = Math.min(box.bottom, clip.bottom)
    }
    if (box.right - box.left > 0.5 && box.bottom - box.top > 0.5) boxes.push(box)
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement
    if (!node.data.trim() || parent.closest('svg, .unseen, .skip') || !parent.checkVisibility()) continue
    const scrolls = parent.closest('.scroll, pre'), range = document.createRange()
    range.selectNodeContents(node)
    for (const rect of range.getClientRects()) {
      if (!scrolls && (rect.right > width + 0.5 || rect.left < -0.5)) problems.push(`${short(node.data)} leaves the page`)
      add(node.data, null, rect, scrolls && scrolls.getBoundingClientRect())
    }
  }
  let least = Infinity
  for (const svg of document.querySelectorAll('svg')) {
    if (!svg.checkVisibility()) continue
    const frame = svg.getBoundingClientRect(), scale = frame.width / svg.viewBox.baseVal.width
    const title = svg.querySelector('title').textContent
    for (const text of svg.querySelectorAll('text')) {
      const rect = text.getBoundingClientRect()
      if (rect.left < frame.left - 0.5 || rect.right > frame.right + 0.5 || rect.top < frame.top - 0.5 || rect.bottom > frame.bottom + 0.5)
        problems.push(`${short(text.textContent)} leaves the picture ${short(title)} at ${[rect.left - frame.left, rect.right - frame.right,
          rect.top - frame.top, rect.bottom - frame.bottom].map(Math.round)}`)
      if (text.textContent.endsWith('…')) notes.push(`${short(text.textContent)} is cut off in ${short(title)}`)
      least = Math.min(least, parseFloat(getComputedStyle(text).fontSize) * scale)
      add(text.textContent, svg, rect, null)
    }
  }
  if (least < 9) problems.push(`text in pictures is ${least.toFixed(1)} pixels high`)

  // Letters have room above and below them in their boxes, which may overlap a little.
  boxes.sort((a, b) => a.top - b.top)
  for (let i = 0; i < boxes.length; i++) {
    const a = boxes[i]
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom; j++) {
      const b = boxes[j], across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
      if (across > 1.5 && down > 0.3 * Math.min(a.bottom - a.top, b.bottom - b.top))
        problems.push(`${short(a.text)} and ${short(b.text)} overlap by ${across.toFixed(0)} x ${down.toFixed(0)} pixels` +
          (a.svg ? ` in ${short(a.svg.querySelector('title').textContent)}` : ''))
    }
  }
  return {problems: [...new Set(problems)], notes: [...new Set(notes)], boxes: boxes.length, least}
}

// contrast finds words in pictures that are hard to read: axe looks only at words of HTML.
export function contrast() {
  const numbers = colour => (colour.match(/[\d.]+/g) || []).map(Number)
  const luminance = colour => colour.slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0)
  const problems = []
  let looked = 0
  for (const svg of document.querySelectorAll('svg')) {
    if (!svg.checkVisibility()) continue
    for (const text of svg.querySelectorAll('text')) {
      text.scrollIntoView({block: 'center', behavior: 'instant'})
      const box = text.getBoundingClientRect()
      const below = document.elementsFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2)
        .filter(one => svg.contains(one) && one.tagName === 'rect')
      if (below.length === 0) continue // it is in no picture's frame, which inspect says
      let back = [255, 255, 255]
      for (const rect of below.reverse()) {
        const style = getComputedStyle(rect), [r, g, b, alpha = 1] = numbers(style.fill)
        if (r === undefined) continue // a frame
        const opacity = alpha * parseFloat(style.fillOpacity)
        back = back.map((part, i) => part * (1 - opacity) + [r, g, b][i] * opacity)
      }
      const [one, other] = [luminance(numbers(getComputedStyle(text).fill)), luminance(back)].sort((a, b) => b - a)
      const ratio = (one + 0.05) / (other + 0.05)
      looked++
      if (ratio < 4.5) problems.push(`${JSON.stringify(text.textContent.slice(0, 40))} in ${JSON.stringify(svg.querySelector('title')
        .textContent.slice(0, 60))} has a contrast of ${ratio.toFixed(1)}`)
    }
  }
  return {problems: [...new Set(problems)], looked}
}

// focused describes the element that has the focus, and whether that can be seen.
export function focused() {
  const one = document.activeElement
  if (!one || one === document.body) return null
  const all = [...document.querySelectorAll('a[href], summary, [tabindex="0"]')]
  const style = getComputedStyle(one), box = one.getBoundingClientRect()
  return {at: all.indexOf(one), words: `${one.tagName} ${(one.getAttribute('aria-label') || one.textContent).trim().slice(0, 40)}`,
    outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
    seen: box.width > 0 && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight}
}
