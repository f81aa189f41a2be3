// Runs Cytra's predict on the open image and adds its objects. Automate > Script editor; set the two names first.
import java.nio.file.Files
import qupath.lib.io.PathIO
import static qupath.lib.scripting.QP.*

def program = "predict"  // on PATH, or its whole path
def model = "/path/of/best.ckpt"
def device = "auto"

def folder = Files.createTempDirectory("cytra").toFile()
def image = new File(folder, "image.ome.tif")
writeImage(getCurrentServer(), image.path)
def command = [program, "checkpoint.ckpt_path=" + model, "data.path=" + image.path, "paths.output_dir=" + folder.path + "/out", "predict.contours=geojson", "trainer.accelerator=" + device, "data.on_error=fail"]
def child = new ProcessBuilder(command).redirectErrorStream(true).start()
def text = child.inputStream.text
if (child.waitFor() != 0)
    throw new RuntimeException("predict: " + text)
def found = new File(folder, "out").listFiles().findAll { it.name.endsWith(".geojson") }
found.each { addObjects(PathIO.readObjects(it.toPath())) }
fireHierarchyUpdate()
println(found.isEmpty() ? "no objects" : "objects of " + found.size() + " file(s) added")
folder.deleteDir()
