// An ATmega328P of avr8js: its USART is this program's standard input and output.
import { readFileSync } from 'fs';
import avr from 'avr8js';
const { CPU, avrInstruction, AVRTimer, AVRUSART, timer0Config, timer1Config, usart0Config } = avr;
function hex(text) {
  const flash = new Uint8Array(32768);
  for (const line of text.split('\n')) {
    if (line.startsWith(':') && line.slice(7, 9) === '00') {
      const at = parseInt(line.slice(3, 7), 16), n = parseInt(line.slice(1, 3), 16);
      for (let i = 0; i < n; i++) flash[at + i] = parseInt(line.slice(9 + 2 * i, 11 + 2 * i), 16);
    }
  }
  return new Uint16Array(flash.buffer);
}
const cpu = new CPU(hex(readFileSync(process.argv[2], 'utf8')));
new AVRTimer(cpu, timer0Config);
new AVRTimer(cpu, timer1Config);
const usart = new AVRUSART(cpu, usart0Config, 16e6);
const waiting = [];
usart.onByteTransmit = (byte) => process.stdout.write(Uint8Array.of(byte));
const feed = () => { if (waiting.length && usart.writeByte(waiting[0])) waiting.shift(); };
usart.onRxComplete = feed;
process.stdin.on('data', (data) => waiting.push(...data));
process.stdin.on('end', () => process.exit(0));
function run() {
  for (let i = 0; i < 200000; i++) {
    avrInstruction(cpu);
    cpu.tick();
    if ((i & 255) === 0) feed();
  }
  setImmediate(run);
}
run();
