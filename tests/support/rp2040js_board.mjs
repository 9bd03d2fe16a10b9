// An RP2040 of rp2040js without its boot ROM: its UART 0 is this program's standard input and output.
import { readFileSync } from 'fs';
import { RP2040 } from 'rp2040js';
const mcu = new RP2040();
const image = readFileSync(process.argv[2]);
mcu.flash.set(image);
mcu.core.VTOR = 0x10000000;
mcu.core.SP = image.readUInt32LE(0);
mcu.core.PC = image.readUInt32LE(4) & ~1;
const waiting = [];
mcu.uart[0].onByte = (byte) => process.stdout.write(Uint8Array.of(byte));
process.stdin.on('data', (data) => waiting.push(...data));
process.stdin.on('end', () => process.exit(0));
// a byte takes its time on a line
function run() {
  for (let i = 0; i < 200; i++) {
    if (waiting.length) mcu.uart[0].feedByte(waiting.shift());
    for (let j = 0; j < 500; j++) mcu.core.executeInstruction();
  }
  setImmediate(run);
}
run();
